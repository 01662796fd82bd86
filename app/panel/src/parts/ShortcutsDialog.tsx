import type { RefObject } from "react";
import { Icon } from "./Icon";

const LISTS = ["/", "/sessions", "/cues", "/review", "/graph", "/runs", "/recalls", "/keys"];
const JUDGED = ["/", "/review", "/graph"];
const PICKED = [...JUDGED, "/cues"];

/** Each with the views that have it; without them, all. */
const KEYS: readonly { readonly key: string; readonly does: string; readonly views?: readonly string[] }[] = [
  { key: "/", does: "Search" },
  { key: "j", does: "Next", views: LISTS },
  { key: "k", does: "Previous", views: LISTS },
  { key: "Enter", does: "Open the current item", views: LISTS },
  { key: "u", does: "Rate the open or current memory up", views: JUDGED },
  { key: "d", does: "Rate the open or current memory down", views: JUDGED },
  { key: "x", does: "Select or deselect", views: PICKED },
  { key: "X", does: "Select all from the last selected item", views: PICKED },
  { key: "n", does: "Write a note", views: ["/"] },
  { key: "n", does: "Make a key", views: ["/keys"] },
  { key: "v", does: "Move the map", views: ["/graph"] },
  { key: "r", does: "Select with a rectangle", views: ["/graph"] },
  { key: "l", does: "Select with a lasso", views: ["/graph"] },
  { key: "z", does: "Undo the last change" },
  { key: "Esc", does: "Leave the field, close the pane or clear the selection" },
  { key: "?", does: "Show this list" },
];

interface Props {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly path: string;
}

export function ShortcutsDialog({ dialog, path }: Props) {
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts-title" closedby="any">
      <div className="dialog-head">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <button type="button" className="icon" onClick={() => dialog.current?.close()}>
          <Icon name="close" label="Close" />
        </button>
      </div>
      <dl className="keys">
        {KEYS.filter(({ views }) => views?.includes(path) ?? true).map(({ key, does }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
