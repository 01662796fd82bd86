import { type FormEvent, useEffect, useId, useState } from "react";
import { changeAddress } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { type Question, questionChanges } from "./question";

/** The question's fields. They follow the address, and keep the focus as it changes. */
export function Form({ asked }: { readonly asked: Question }) {
  const [draft, setDraft] = useState(asked);
  const address = JSON.stringify(asked);
  useEffect(() => setDraft(asked), [address]);
  const id = useId();
  const set = (change: Partial<Question>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    changeAddress(questionChanges(draft));
  };
  useShortcuts({ "/": () => document.getElementById(`${id}-query`)?.focus() });
  return (
    <form className="ask-form" onSubmit={submit}>
      <div className="field query">
        <label htmlFor={`${id}-query`}>Query</label>
        <textarea
          id={`${id}-query`}
          rows={2}
          dir="auto"
          required
          maxLength={20_000}
          placeholder="scout actors results BADs Russia"
          value={draft.query}
          onChange={(event) => set({ query: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
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
        {NUMBERS.map(({ name, ...limits }) => (
          <NumberField key={name} id={`${id}-${name}`} value={draft[name]} set={(value) => set({ [name]: value })} {...limits} />
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
  { name: "budget", label: "Token budget", least: 1, most: 100_000, step: 1 },
  { name: "relevance", label: "Relevance weight", least: 0, most: 1, step: 0.05 },
  { name: "quality", label: "Score weight", least: 0, most: 1, step: 0.05 },
] as const;

interface NumberProps {
  readonly id: string;
  readonly label: string;
  readonly least: number;
  readonly most: number;
  readonly step: number;
  readonly value: number;
  readonly set: (value: number) => void;
}

function NumberField({ id, label, least, most, step, value, set }: NumberProps) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={least}
        max={most}
        step={step}
        required
        value={Number.isNaN(value) ? "" : value}
        onChange={(event) => set(event.target.valueAsNumber)}
      />
    </div>
  );
}
