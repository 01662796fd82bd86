import { type FormEvent, type RefObject, useEffect, useState } from "react";
import { linkTo } from "../state/address";
import { keepReviewer, REVIEWER_LIMIT, useReviewer } from "../state/reviewer";
import { apiKey, changeKey, useKeyAsked } from "../state/session";
import { TextField } from "./Field";
import { Icon } from "./Icon";
import { Link } from "./Link";

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
    <dialog ref={dialog} aria-labelledby="settings-title" closedby="any">
      <div className="dialog-head">
        <h2 id="settings-title">Settings</h2>
        <button type="button" className="icon" onClick={() => dialog.current?.close()}>
          <Icon name="close" label="Close" />
        </button>
      </div>
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
        <p>
          <Link href={linkTo("/service", { part: "keys" })} onClick={() => dialog.current?.close()}>
            Manage the API keys of this service
          </Link>
        </p>
      </form>
    </dialog>
  );
}
