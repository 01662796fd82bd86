import { useEffect, useRef } from "react";
import { useService } from "../../api/client";
import { AreaField, ChoiceField, TextField } from "../../parts/Field";
import { Icon } from "../../parts/Icon";
import { Empty, Working } from "../../parts/states";
import { useDraft } from "../../state/draft";
import { notifyFailure } from "../../state/notices";
import { ask, chooseTab, fillFromSubject, type Tried, useTried } from "../../state/tried";
import { Compiled } from "./Compiled";
import { History } from "./History";
import { Plan } from "./Plan";

const TABS = [
  { value: "history", name: "History", text: "Query", option: "Preset", action: "Ask" },
  { value: "plan", name: "Plan", text: "Plan or action", option: "Files, separated by commas", action: "Activate" },
  { value: "context", name: "Context", text: "Observation", option: "Session", action: "Compile" },
] as const;
const PRESETS = ["default", "classic", "ranks"].map((name) => [name, name] as const);
const TEXT_LIMIT = 20_000;
/** Characters. */

/** The answer that an agent would get: the history for a query, the cues for a plan, or the whole context. */
export function Try({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const asked = useTried();
  // Each context is stored: it is made on request alone.
  const make = useService().useMutation("post", "/api/contexts", {
    onError: (error) => notifyFailure("No context was made", error),
  });
  const submit = (draft: Tried) => {
    ask(draft);
    const { text, agent, option, budget } = draft;
    if (draft.tab !== "context") return;
    make.mutate({
      body: { observation: text.trim(), session: option.trim(), agent: agent || null, ...(budget && { budget: { total: budget } }) },
    });
  };
  useEffect(() => {
    fillFromSubject();
    dialog.current?.showModal();
    dialog.current?.querySelector("textarea")?.focus();
  }, []);
  const { tab, text } = asked;
  return (
    <dialog ref={dialog} className="drawer ask" aria-label="Try" closedby="any" onClose={onClose}>
      <div className="dialog-head">
        <div className="tabs" role="group" aria-label="What to try">
          {TABS.map(({ value, name }) => (
            <button key={value} type="button" aria-pressed={value === tab} onClick={() => chooseTab(value)}>
              {name}
            </button>
          ))}
        </div>
        <button type="button" className="icon" onClick={() => dialog.current?.close()} title="Close (Esc)">
          <Icon name="close" label="Close" />
        </button>
      </div>
      <AskForm key={tab} asked={asked} submit={submit} pending={make.isPending} />
      {tab === "context" && make.data?.id && <Compiled id={make.data.id} />}
      {tab === "history" && text !== "" && <History asked={asked} />}
      {tab === "plan" && text !== "" && <Plan asked={asked} />}
      {(tab === "context" ? !make.data : text === "") && (
        <Empty title="See what an agent would get">
          <p>Type what an agent is about to do. You see the text that goes into its prompt, and why each part of it was chosen.</p>
        </Empty>
      )}
    </dialog>
  );
}

interface FormProps {
  readonly asked: Tried;
  readonly submit: (draft: Tried) => void;
  readonly pending: boolean;
}

/** A text that an agent would send, with its options. Enter sends it, Shift and Enter begin a new line. */
function AskForm({ asked, submit, pending }: FormProps) {
  const [draft, setDraft, forget] = useDraft(`try ${JSON.stringify(asked)}`, asked);
  const set = (change: Partial<Tried>) => setDraft({ ...draft, ...change });
  const { value: tab, text, option, action } = TABS.find(({ value }) => value === asked.tab) ?? TABS[0];
  return (
    <form
      className="ask-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (pending) return;
        forget();
        submit(draft);
      }}
    >
      <AreaField
        label={text}
        required
        maxLength={TEXT_LIMIT}
        value={draft.text}
        set={(text) => set({ text })}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }
        }}
      />
      <div className="ask-options">
        <TextField label="Agent" placeholder="Any" value={draft.agent} set={(agent) => set({ agent })} />
        {tab === "history" ? (
          <ChoiceField label={option} value={draft.option || "default"} set={(option) => set({ option })} options={PRESETS} />
        ) : (
          <TextField label={option} placeholder="None" value={draft.option} set={(option) => set({ option })} />
        )}
        <TextField
          label="Token budget"
          type="number"
          min={1}
          max={100_000}
          value={String(draft.budget ?? "")}
          set={(budget) => set({ budget: budget === "" ? null : Number(budget) })}
        />
        <button type="submit" className="primary" disabled={pending || draft.text.trim() === ""}>
          {action}
        </button>
        {pending && <Working what="Compiling" />}
      </div>
    </form>
  );
}
