import { useEffect, useRef } from "react";
import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { HistoryInput } from "../../api/schema";
import { ChoiceField, NumberField, Switch } from "../../parts/Field";
import { Icon } from "../../parts/Icon";
import { lengthOf, ScoreLegend } from "../../parts/ScoreBar";
import { Empty } from "../../parts/states";
import { type Asked, chooseTab, fillFromSubject, STANDARD, useTried } from "../../state/tried";
import { Activation } from "./Activation";
import { Answer } from "./Answer";
import { AskForm } from "./AskForm";
import { ContextTab } from "./ContextTab";

const TABS = [
  { value: "history", name: "History", View: History },
  { value: "plan", name: "Plan", View: Activation },
  { value: "context", name: "Context", View: ContextTab },
] as const;

/** The answer that an agent would get: the history for a query, the cues for a plan, or the whole context. */
export function Try({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const chosen = useTried().tab;
  const tab = TABS.find(({ value }) => value === chosen) ?? TABS[0];
  useEffect(() => {
    fillFromSubject();
    dialog.current?.showModal();
    dialog.current?.querySelector("textarea")?.focus();
  }, []);
  return (
    <dialog ref={dialog} className="drawer ask" aria-label="Try" closedby="any" onClose={onClose}>
      <div className="dialog-head">
        <Switch className="tabs" label="What to try" value={tab.value} set={chooseTab} options={TABS} />
        <button type="button" className="icon" onClick={() => dialog.current?.close()} title="Close (Esc)">
          <Icon name="close" label="Close" />
        </button>
      </div>
      <tab.View />
    </dialog>
  );
}

/** A query as an agent sends it, answered with one preset or with two side by side. */
function History() {
  const asked = useTried().history;
  return (
    <>
      <AskForm tab="history" label="Query" placeholder="scout actors results BADs Russia" action="Ask">
        {(draft, set) => (
          <>
            <ChoiceField label="Preset" value={draft.preset} set={(preset) => set({ preset })} options={PRESETS} />
            {NUMBERS.map(({ name, ...limits }) => (
              <NumberField key={name} value={draft[name]} set={(value) => set({ [name]: value })} {...limits} />
            ))}
          </>
        )}
      </AskForm>
      {asked.text === "" ? (
        <Empty title="See what an agent would get">
          <p>
            Type what an agent is about to do. You see which memories it would get, why each of them was chosen, and the Markdown that goes
            into its prompt.
          </p>
        </Empty>
      ) : (
        <Answers asked={asked} />
      )}
    </>
  );
}

const PRESETS = [
  ["both", "default and classic"],
  ["default", "default"],
  ["classic", "classic"],
  ["ranks", "ranks"],
] as const;
const NUMBERS = [
  { name: "k", label: "Hits", min: 1, max: 50 },
  { name: "relevance", label: "Relevance weight", min: 0, max: 1, step: 0.05 },
  { name: "quality", label: "Score weight", min: 0, max: 1, step: 0.05 },
] as const;

function Answers({ asked }: { readonly asked: Asked<"history"> }) {
  const both = asked.preset === "both";
  const { useQuery } = useService();
  const ask = (preset: string) => useQuery("post", "/api/history", { body: input(asked, preset) }, { ...ONCE, enabled: preset !== "" });
  const first = ask(both ? "default" : asked.preset);
  const second = ask(both ? "classic" : "");
  const hits = [...(first.data?.hits ?? []), ...(second.data?.hits ?? [])];
  const most = Math.max(0.01, ...hits.map(({ parts }) => lengthOf(parts)));
  return (
    <>
      <ScoreLegend />
      <div className={both ? "answers both" : "answers"}>
        <Answer
          name={both ? "default" : asked.preset}
          answer={first}
          most={most}
          {...(both && { other: { name: "classic", hits: second.data?.hits } })}
        />
        {both && <Answer name="classic" answer={second} most={most} other={{ name: "default", hits: first.data?.hits }} />}
      </div>
    </>
  );
}

function input(asked: Asked<"history">, preset: string): HistoryInput {
  const standard = asked.relevance === STANDARD.history.relevance && asked.quality === STANDARD.history.quality;
  return {
    query: asked.text,
    agent: asked.agent || null,
    k: asked.k,
    budget_tokens: asked.budget,
    preset,
    trial: true,
    ...(standard ? {} : { weights: { relevance: asked.relevance, quality: asked.quality, recency: preset !== "classic" } }),
  };
}
