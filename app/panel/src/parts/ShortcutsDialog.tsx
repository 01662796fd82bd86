import type { RefObject } from "react";
import { Icon } from "./Icon";

const KEYS = [
  ["/", "Search"],
  ["j", "Next memory"],
  ["k", "Memory before"],
  ["u", "Rate up"],
  ["d", "Rate down"],
  ["x", "Select, in Review and Graph"],
  ["v", "Move the map"],
  ["r", "Select by rectangle"],
  ["l", "Select by lasso"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
] as const;

export function ShortcutsDialog({ dialog }: { readonly dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts-title" closedby="any">
      <div className="dialog-head">
        <h2 id="shortcuts-title">Keyboard</h2>
        <button type="button" className="icon" onClick={() => dialog.current?.close()}>
          <Icon name="close" label="Close" />
        </button>
      </div>
      <dl className="keys">
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
