import { type FormEvent, type RefObject, useEffect, useState } from "react";
import { keepReviewer, REVIEWER_LIMIT, useReviewer } from "../state/reviewer";
import { apiKey, changeKey, useKeyAsked } from "../state/session";
import { Dialog } from "./Dialog";
import { TextField } from "./Field";

/** Settings of this browser. */
export function Settings({ dialog }: { readonly dialog: RefObject<HTMLDialogElement | null> }) {
  const kept = useReviewer();
  useKeyAsked();
  const [name, setName] = useState(kept);
  useEffect(() => setName(kept), [kept]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    keepReviewer(name);
    dialog.current?.close();
  };
  const enterKey = () => {
    dialog.current?.close();
    changeKey();
  };
  return (
    <Dialog dialog={dialog} title="Settings">
      <form className="note-form" onSubmit={submit}>
        <TextField label="Your name, shown with your ratings" maxLength={REVIEWER_LIMIT} autoComplete="name" value={name} set={setName} />
        <p className="muted">This browser keeps the name. You have one rating of each memory, which you can change.</p>
        <button type="submit" className="primary">
          Save
        </button>
        {apiKey() !== null && (
          <button type="button" onClick={enterKey}>
            Enter another API key
          </button>
        )}
      </form>
    </Dialog>
  );
}
