import { type FormEvent, useEffect, useId, useState } from "react";
import { useHistory } from "../../api/service";
import type { HistoryInput } from "../../api/types";
import { DEFAULT_WEIGHTS } from "../../parts/components";
import { ScoreLegend } from "../../parts/ScoreBar";
import { Empty } from "../../parts/states";
import { changeAddress, useAddress } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { Answer } from "./Answer";
import { type Question, questionChanges, readQuestion } from "./question";

/** A query as an agent asks it, answered by one preset or by two side by side. */
export function Ask() {
  const { params } = useAddress();
  const asked = readQuestion(params);
  useEffect(() => {
    document.title = "Ask · Priors";
  }, []);
  return (
    <div className="ask">
      <h1 className="visually-hidden">Ask</h1>
      <Form key={params.toString()} asked={asked} />
      {asked.query === "" ? (
        <Empty title="Ask as an agent would">
          <p>
            Type what an agent is about to do. You see which memories the agent would get, why each of them was chosen,
            and the Markdown that goes into its prompt.
          </p>
        </Empty>
      ) : (
        <Answers asked={asked} />
      )}
    </div>
  );
}

function Form({ asked }: { readonly asked: Question }) {
  const [draft, setDraft] = useState(asked);
  const id = useId();
  const set = (change: Partial<Question>) => setDraft({ ...draft, ...change });
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    changeAddress(questionChanges(draft));
  };
  useShortcuts({ "/": () => document.getElementById(`${id}-query`)?.focus() });
  const number = (name: "k" | "budget" | "relevance" | "quality", label: string, least: number, most: number, step: number) => (
    <div className="field">
      <label htmlFor={`${id}-${name}`}>{label}</label>
      <input
        id={`${id}-${name}`}
        type="number"
        min={least}
        max={most}
        step={step}
        required
        value={Number.isNaN(draft[name]) ? "" : draft[name]}
        onChange={(event) => set({ [name]: event.target.valueAsNumber })}
      />
    </div>
  );
  return (
    <form className="ask-form" onSubmit={submit}>
      <div className="field query">
        <label htmlFor={`${id}-query`}>Query</label>
        <textarea
          id={`${id}-query`}
          rows={2}
          required
          maxLength={20_000}
          placeholder="scout actors results BADs Russia"
          value={draft.query}
          onChange={(event) => set({ query: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }
          }}
        />
      </div>
      <div className="ask-options">
        <div className="field">
          <label htmlFor={`${id}-agent`}>Agent</label>
          <input id={`${id}-agent`} value={draft.agent} maxLength={200} placeholder="Any" onChange={(event) => set({ agent: event.target.value })} />
        </div>
        <div className="field">
          <label htmlFor={`${id}-preset`}>Preset</label>
          <select id={`${id}-preset`} value={draft.preset} onChange={(event) => set({ preset: event.target.value })}>
            <option value="both">default and classic</option>
            <option value="default">default</option>
            <option value="classic">classic</option>
            <option value="ranks">ranks</option>
          </select>
        </div>
        {number("k", "Hits", 1, 50, 1)}
        {number("budget", "Token budget", 1, 100_000, 1)}
        {number("relevance", "Relevance weight", 0, 1, 0.05)}
        {number("quality", "Score weight", 0, 1, 0.05)}
        <button type="submit" className="primary">
          Ask
        </button>
      </div>
    </form>
  );
}

function Answers({ asked }: { readonly asked: Question }) {
  const first = useHistory(input(asked, asked.preset === "both" ? "default" : asked.preset));
  const second = useHistory(input(asked, asked.preset === "both" ? "classic" : ""));
  const weights = asked.relevance === DEFAULT_WEIGHTS.relevance && asked.quality === DEFAULT_WEIGHTS.quality ? DEFAULT_WEIGHTS : asked;
  const hits = [...(first.data?.hits ?? []), ...(second.data?.hits ?? [])];
  const most = Math.max(0.01, ...hits.map((hit) => hit.score));
  const both = asked.preset === "both";
  return (
    <>
      <ScoreLegend />
      <div className={both ? "answers both" : "answers"}>
        <Answer name={both ? "default" : asked.preset} answer={first} weights={weights} most={most} />
        {both && <Answer name="classic" answer={second} weights={weights} most={most} />}
      </div>
    </>
  );
}

function input(asked: Question, preset: string): HistoryInput {
  const own = asked.relevance !== DEFAULT_WEIGHTS.relevance || asked.quality !== DEFAULT_WEIGHTS.quality;
  return {
    query: preset ? asked.query : "",
    agent: asked.agent || null,
    k: asked.k,
    budget_tokens: asked.budget,
    preset,
    ...(own ? { weights: { relevance: asked.relevance, quality: asked.quality, recency: preset !== "classic" } } : {}),
  };
}
