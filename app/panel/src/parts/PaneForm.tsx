import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import { PaneTitle } from "./PaneTitle";
import { Working } from "./states";

interface Props {
  readonly title: string;
  /** The label of the button that saves. */
  readonly action?: string;
  /** True if the fields can be saved. */
  readonly ready: boolean;
  readonly saving: boolean;
  readonly submit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The fields of what is open. Ctrl or Cmd with Enter saves from each of them. */
export function PaneForm({ title, action = "Save", ready, saving, submit, onClose, children }: Props) {
  const submitted = (event: FormEvent) => {
    event.preventDefault();
    // Keys send a form whose button is disabled, too.
    if (ready && !saving) submit();
  };
  const keyed = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <form className="note-form" onSubmit={submitted} onKeyDown={keyed}>
      <PaneTitle>{title}</PaneTitle>
      {children}
      <p className="note-actions">
        <button type="submit" className="primary" disabled={saving || !ready}>
          {action}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {saving && <Working what="Saving" />}
      </p>
    </form>
  );
}
