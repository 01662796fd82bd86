import { useEffect } from "react";
import { useHistory } from "../../api/service";
import type { Filters, HistoryInput } from "../../api/types";
import { DEFAULT_WEIGHTS, lengthOf } from "../../parts/components";
import { ScoreLegend } from "../../parts/ScoreBar";
import { Empty } from "../../parts/states";
import { useAddress } from "../../state/address";
import { Filtering } from "../memories/FilterBar";
import { readFilters } from "../memories/filters";
import { Answer } from "./Answer";
import { Form } from "./Form";
import { type Question, readQuestion } from "./question";

/** A query as an agent sends it, answered with one preset or with two side by side. */
export function Ask() {
  const { params } = useAddress();
  const asked = readQuestion(params);
  useEffect(() => {
    document.title = "Ask · Priors";
  }, []);
  return (
    <div className="ask">
      <h1 className="visually-hidden">Ask</h1>
      <Form asked={asked} />
      <Filtering />
      {asked.query === "" ? (
        <Empty title="See what an agent would get">
          <p>
            Type what an agent is about to do. You see which memories the agent would get, why each of them was chosen,
            and the Markdown that goes into its prompt.
          </p>
        </Empty>
      ) : (
        <Answers asked={asked} filters={readFilters(params)} />
      )}
    </div>
  );
}

function Answers({ asked, filters }: { readonly asked: Question; readonly filters: Filters }) {
  const both = asked.preset === "both";
  const first = useHistory(input(asked, both ? "default" : asked.preset, filters));
  const second = useHistory(input(asked, both ? "classic" : "", filters));
  const weights = isStandard(asked) ? DEFAULT_WEIGHTS : asked;
  const hits = [...(first.data?.hits ?? []), ...(second.data?.hits ?? [])];
  const most = Math.max(0.01, ...hits.map(({ explain }) => lengthOf(explain, weights)));
  const shared = { weights, most };
  return (
    <>
      <ScoreLegend />
      <div className={both ? "answers both" : "answers"}>
        <Answer name={both ? "default" : asked.preset} answer={first} {...shared} {...(both && { other: { name: "classic", hits: second.data?.hits } })} />
        {both && <Answer name="classic" answer={second} {...shared} other={{ name: "default", hits: first.data?.hits }} />}
      </div>
    </>
  );
}

function isStandard({ relevance, quality }: Question): boolean {
  return relevance === DEFAULT_WEIGHTS.relevance && quality === DEFAULT_WEIGHTS.quality;
}

function input(asked: Question, preset: string, filters: Filters): HistoryInput {
  return {
    query: preset ? asked.query : "",
    agent: asked.agent || null,
    k: asked.k,
    budget_tokens: asked.budget,
    preset,
    filters,
    trial: true,
    ...(isStandard(asked) ? {} : { weights: { relevance: asked.relevance, quality: asked.quality, recency: preset !== "classic" } }),
  };
}
