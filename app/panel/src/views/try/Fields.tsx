/** The fields that a question and a plan share. */

import { Field } from "../../parts/Field";

const TEXT_LIMIT = 20_000;
const NAME_LIMIT = 200;
/** Characters. */

interface TextProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly set: (value: string) => void;
}

/** The text that is asked. Enter sends it, Shift and Enter begin a new line. */
export function AskedText({ label, placeholder, value, set }: TextProps) {
  return (
    <Field label={label} className="query">
      {(id) => (
        <textarea
          id={id}
          rows={2}
          dir="auto"
          required
          maxLength={TEXT_LIMIT}
          placeholder={placeholder}
          value={value}
          onChange={(event) => set(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }
          }}
        />
      )}
    </Field>
  );
}

export function AgentField({ value, set }: Pick<TextProps, "value" | "set">) {
  return <Field label="Agent">{(id) => <input id={id} value={value} maxLength={NAME_LIMIT} placeholder="Any" onChange={(event) => set(event.target.value)} />}</Field>;
}

interface NumberProps {
  readonly label: string;
  readonly least: number;
  readonly most: number;
  readonly step: number;
  readonly value: number;
  readonly set: (value: number) => void;
}

export function NumberField({ label, least, most, step, value, set }: NumberProps) {
  return (
    <Field label={label}>
      {(id) => (
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
      )}
    </Field>
  );
}

export const BUDGET = { label: "Token budget", least: 1, most: 100_000, step: 1 } as const;
