import { useEffect } from "react";
import { useHistory } from "../../api/service";
import type { Filters, HistoryInput } from "../../api/types";
import { DEFAULT_WEIGHTS, lengthOf } from "../../parts/components";
import { ScoreLegend } from "../../parts/ScoreBar";
import { Empty } from "../../parts/states";
import { Link } from "../../parts/Link";
import { linkWith, useAddress } from "../../state/address";
import { Filtering } from "../memories/FilterBar";
import { NO_FILTERS, readFilters } from "../memories/filters";
import { Activation } from "./Activation";
import { Answer } from "./Answer";
import { ContextTab } from "./context/ContextTab";
import { Form } from "./Form";
import { type Question, readQuestion } from "./question";

const TABS = [
  { name: null, label: "History", View: History },
  { name: "plan", label: "Activation", View: Activation },
  { name: "context", label: "Context", View: ContextTab },
] as const;

/** Parameters of one tab, which mean nothing in another. */
const OWN_TO_A_TAB = {
  preset: null, k: null, budget: null, relevance: null, quality: null, file: null, session: null, context: null,
};

/** The answer that an agent would get: the history for a query, the cues for a plan, or the whole context. */
export function Ask() {
  const { params } = useAddress();
  const tab = TABS.find(({ name }) => name === params.get("for")) ?? TABS[0];
  useEffect(() => {
    document.title = "Ask · Priors";
  }, []);
  return (
    <div className="ask" tabIndex={-1}>
      <h1 className="visually-hidden">Ask</h1>
      <nav className="tabs" aria-label="What to ask for">
        {TABS.map(({ name, label }) => (
          <Link key={label} href={linkWith({ ...OWN_TO_A_TAB, ...(name && NO_FILTERS), for: name })} aria-current={name === tab.name ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <tab.View />
    </div>
  );
}

/** A query as an agent sends it, answered with one preset or with two side by side. */
function History() {
  const { params } = useAddress();
  const asked = readQuestion(params);
  return (
    <>
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
    </>
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
