import { type ReactNode, useEffect, useState } from "react";
import { Field } from "../../parts/Field";
import { Working } from "../../parts/states";
import { type Asked, ask, type Tab, useTried } from "../../state/tried";

const TEXT_LIMIT = 20_000;
const LINE_LIMIT = 2_000;
/** Characters. */

interface Props<T extends Tab> {
  readonly tab: T;
  readonly label: string;
  readonly placeholder: string;
  /** The label of the button that asks. */
  readonly action: string;
  /** What is said while it is asked. */
  readonly pending?: string | false;
  readonly asks?: (asked: Asked<T>) => void;
  /** The tab's own fields, between the agent and the budget. */
  readonly children?: (draft: Asked<T>, set: (change: Partial<Asked<T>>) => void) => ReactNode;
}

/** A text that an agent would send, with its options. Enter sends it, Shift and Enter begin a new line. */
export function AskForm<T extends Tab>({
  tab,
  label,
  placeholder,
  action,
  pending,
  asks = (asked) => ask(tab, asked),
  children,
}: Props<T>) {
  const asked: Asked<T> = useTried()[tab];
  const [draft, setDraft] = useState(asked);
  useEffect(() => setDraft(asked), [asked]);
  const set = (change: Partial<Asked<T>>) => setDraft({ ...draft, ...change });
  return (
    <form
      className="ask-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!pending) asks(draft);
      }}
    >
      <Field label={label} className="query">
        {(id) => (
          <textarea
            id={id}
            rows={2}
            dir="auto"
            required
            maxLength={TEXT_LIMIT}
            placeholder={placeholder}
            value={draft.text}
            onChange={(event) => set({ text: event.target.value } as Partial<Asked<T>>)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
                event.preventDefault();
                event.currentTarget.form?.requestSubmit();
              }
            }}
          />
        )}
      </Field>
      <div className={tab === "history" ? "ask-options" : "plan-options"}>
        <TextField label="Agent" placeholder="Any" value={draft.agent} set={(agent) => set({ agent } as Partial<Asked<T>>)} />
        {children?.(draft, set)}
        <NumberField
          label="Token budget"
          least={1}
          most={100_000}
          value={draft.budget}
          set={(budget) => set({ budget } as Partial<Asked<T>>)}
        />
        <button type="submit" className="primary" disabled={Boolean(pending) || draft.text.trim() === ""}>
          {action}
        </button>
        {pending && <Working what={pending} />}
      </div>
    </form>
  );
}

interface TextProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly set: (value: string) => void;
}

export function TextField({ label, placeholder, value, set }: TextProps) {
  return (
    <Field label={label}>
      {(id) => (
        <input id={id} value={value} maxLength={LINE_LIMIT} placeholder={placeholder} onChange={(event) => set(event.target.value)} />
      )}
    </Field>
  );
}

interface NumberProps {
  readonly label: string;
  readonly least: number;
  readonly most: number;
  readonly step?: number;
  readonly value: number;
  readonly set: (value: number) => void;
}

export function NumberField({ label, least, most, step = 1, value, set }: NumberProps) {
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
