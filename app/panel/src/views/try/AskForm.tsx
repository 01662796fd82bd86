import type { ReactNode } from "react";
import { AreaField, NumberField, TextField } from "../../parts/Field";
import { Working } from "../../parts/states";
import { useDraft } from "../../state/draft";
import { type Asked, ask, type Tab, useTried } from "../../state/tried";

const TEXT_LIMIT = 20_000;
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
  const [draft, setDraft, forget] = useDraft(`try ${tab} ${JSON.stringify(asked)}`, asked);
  const set = (change: Partial<Asked<T>>) => setDraft({ ...draft, ...change });
  return (
    <form
      className="ask-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (pending) return;
        forget();
        asks(draft);
      }}
    >
      <AreaField
        label={label}
        className="query"
        required
        maxLength={TEXT_LIMIT}
        placeholder={placeholder}
        value={draft.text}
        set={(text) => set({ text } as Partial<Asked<T>>)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }
        }}
      />
      <div className={tab === "history" ? "ask-options" : "plan-options"}>
        <TextField label="Agent" placeholder="Any" value={draft.agent} set={(agent) => set({ agent } as Partial<Asked<T>>)} />
        {children?.(draft, set)}
        <NumberField
          label="Token budget"
          min={1}
          max={100_000}
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
