import type { RefObject } from "react";
import { CHORDS } from "../state/places";
import { Dialog } from "./Dialog";

const DESK = ["/"];
const MEMORY = ["/memory"];
const LISTS = ["/", "/cases", "/runs", "/memory"];
const JUDGED = [...DESK, ...MEMORY];

/** Each with the places that have it; without them, all. */
const KEYS: readonly { readonly key: string; readonly does: string; readonly places?: readonly string[] }[] = [
  ...CHORDS.map(({ key, name }) => ({ key: `g ${key}`, does: `Go to ${name}` })),
  { key: "t", does: "Try what an agent would get, with what is open" },
  { key: "/", does: "Search, in the open pane or else in the list; Enter opens the first match" },
  { key: "j", does: "Next", places: LISTS },
  { key: "k", does: "Previous", places: LISTS },
  { key: "Enter", does: "Open the current item", places: LISTS },
  { key: "1 – 8", does: "Show one reason; 0 shows all that waits", places: DESK },
  { key: "w", does: "Unfold why, or what cannot be concluded", places: ["/", "/runs"] },
  { key: "e", does: "Keep until something changes", places: DESK },
  { key: "#", does: "Delete, or decline", places: DESK },
  { key: "r", does: "Release or restore", places: DESK },
  { key: "a", does: "Accept", places: DESK },
  { key: "b", does: "Take back what is open, with all that says the same", places: JUDGED },
  { key: "u", does: "Rate the open memory up", places: JUDGED },
  { key: "d", does: "Rate the open memory down", places: JUDGED },
  { key: "x", does: "Select or deselect", places: MEMORY },
  { key: "X", does: "Select all from the last selected item", places: MEMORY },
  { key: "n", does: "Write a note", places: MEMORY },
  { key: "n", does: "Make an API key, in their part", places: ["/service"] },
  { key: "r", does: "On the map: select with a rectangle, or move the map again", places: MEMORY },
  { key: "z", does: "Undo the last change, as long as the page is open" },
  { key: "Esc", does: "Leave the field, close the pane or clear the selection" },
  { key: "?", does: "Show this list" },
];

interface Props {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly path: string;
}

export function ShortcutsDialog({ dialog, path }: Props) {
  return (
    <Dialog dialog={dialog} title="Keyboard shortcuts">
      <dl className="keys">
        {KEYS.filter(({ places }) => places?.includes(path) ?? true).map(({ key, does }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
