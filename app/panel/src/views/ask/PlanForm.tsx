import { type FormEvent, useEffect, useId, useState } from "react";
import { changeAddress } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { type Plan, planChanges } from "./plan";

/** The fields of a plan. They follow the address. */
export function PlanForm({ asked }: { readonly asked: Plan }) {
  const [draft, setDraft] = useState(asked);
  const [files, setFiles] = useState(asked.files.join(", "));
  const address = JSON.stringify(asked);
  useEffect(() => {
    setDraft(asked);
    setFiles(asked.files.join(", "));
  }, [address]);
  const id = useId();
  const set = (change: Partial<Plan>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const named = files.split(",").map((path) => path.trim()).filter(Boolean);
    changeAddress(planChanges({ ...draft, files: named }));
  };
  useShortcuts({ "/": () => document.getElementById(`${id}-plan`)?.focus() });
  return (
    <form className="ask-form" onSubmit={submit}>
      <div className="field query">
        <label htmlFor={`${id}-plan`}>Plan or action</label>
        <textarea
          id={`${id}-plan`}
          rows={2}
          dir="auto"
          required
          maxLength={20_000}
          placeholder="drop column deprecated_flag"
          value={draft.plan}
          onChange={(event) => set({ plan: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }
          }}
        />
      </div>
      <div className="plan-options">
        <div className="field">
          <label htmlFor={`${id}-files`}>Files, separated by commas</label>
          <input id={`${id}-files`} value={files} placeholder="Any" onChange={(event) => setFiles(event.target.value)} />
        </div>
        <div className="field">
          <label htmlFor={`${id}-agent`}>Agent</label>
          <input id={`${id}-agent`} value={draft.agent} maxLength={200} placeholder="Any" onChange={(event) => set({ agent: event.target.value })} />
        </div>
        <div className="field">
          <label htmlFor={`${id}-budget`}>Token budget</label>
          <input
            id={`${id}-budget`} type="number" min={1} max={100_000} step={1} required
            value={Number.isNaN(draft.budget) ? "" : draft.budget}
            onChange={(event) => set({ budget: event.target.valueAsNumber })}
          />
        </div>
        <button type="submit" className="primary">
          Activate
        </button>
      </div>
    </form>
  );
}
