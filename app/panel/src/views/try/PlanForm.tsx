import { type FormEvent, useEffect, useState } from "react";
import { Field } from "../../parts/Field";
import { changeTried } from "../../state/tried";
import { AgentField, AskedText, BUDGET, NumberField } from "./Fields";
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
  const set = (change: Partial<Plan>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const named = files.split(",").map((path) => path.trim()).filter(Boolean);
    changeTried(planChanges({ ...draft, files: named }));
  };
  return (
    <form className="ask-form" onSubmit={submit}>
      <AskedText label="Plan or action" placeholder="drop column deprecated_flag" value={draft.plan} set={(plan) => set({ plan })} />
      <div className="plan-options">
        <Field label="Files, separated by commas">
          {(id) => <input id={id} value={files} placeholder="Any" onChange={(event) => setFiles(event.target.value)} />}
        </Field>
        <AgentField value={draft.agent} set={(agent) => set({ agent })} />
        <NumberField {...BUDGET} value={draft.budget} set={(budget) => set({ budget })} />
        <button type="submit" className="primary">
          Activate
        </button>
      </div>
    </form>
  );
}
