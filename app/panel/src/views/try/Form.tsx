import { type FormEvent, useEffect, useState } from "react";
import { Field } from "../../parts/Field";
import { changeTried } from "../../state/tried";
import { AgentField, AskedText, BUDGET, NumberField } from "./Fields";
import { type Question, questionChanges } from "./question";

/** The question's fields. They follow the address, and keep the focus as it changes. */
export function Form({ asked }: { readonly asked: Question }) {
  const [draft, setDraft] = useState(asked);
  const address = JSON.stringify(asked);
  useEffect(() => setDraft(asked), [address]);
  const set = (change: Partial<Question>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    changeTried(questionChanges(draft));
  };
  return (
    <form className="ask-form" onSubmit={submit}>
      <AskedText label="Query" placeholder="scout actors results BADs Russia" value={draft.query} set={(query) => set({ query })} />
      <div className="ask-options">
        <AgentField value={draft.agent} set={(agent) => set({ agent })} />
        <Field label="Preset">
          {(id) => (
            <select id={id} value={draft.preset} onChange={(event) => set({ preset: event.target.value })}>
              <option value="both">default and classic</option>
              <option value="default">default</option>
              <option value="classic">classic</option>
              <option value="ranks">ranks</option>
            </select>
          )}
        </Field>
        {NUMBERS.map(({ name, ...limits }) => (
          <NumberField key={name} value={draft[name]} set={(value) => set({ [name]: value })} {...limits} />
        ))}
        <button type="submit" className="primary">
          Ask
        </button>
      </div>
    </form>
  );
}

const NUMBERS = [
  { name: "k", label: "Hits", least: 1, most: 50, step: 1 },
  { name: "budget", ...BUDGET },
  { name: "relevance", label: "Relevance weight", least: 0, most: 1, step: 0.05 },
  { name: "quality", label: "Score weight", least: 0, most: 1, step: 0.05 },
] as const;
