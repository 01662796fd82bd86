import { type ReactNode, type RefObject, useId } from "react";
import { Icon } from "./Icon";

interface Props {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly title: string;
  readonly children: ReactNode;
}

/** A window above the page; Escape, a click beside it and its button close it. */
export function Dialog({ dialog, title, children }: Props) {
  const id = useId();
  return (
    <dialog ref={dialog} aria-labelledby={id} closedby="any">
      <div className="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" className="icon" onClick={() => dialog.current?.close()}>
          <Icon name="close" label="Close" />
        </button>
      </div>
      {children}
    </dialog>
  );
}
