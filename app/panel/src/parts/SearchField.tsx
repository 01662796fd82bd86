import { type ReactNode, useEffect, useState } from "react";
import { changeAddress } from "../state/address";
import { useDebounced } from "../state/debounced";
import { askForFirst } from "../state/search";
import { Icon } from "./Icon";

interface Props {
  /** The text that the address has as `q`. */
  readonly text: string;
  readonly label: string;
  readonly placeholder: string;
  /** Milliseconds after the last key, before the address gets the text: the service logs each search. */
  readonly pause?: number;
  readonly children?: ReactNode;
}

/** A search whose text is in the address; Enter opens the first match. */
export function SearchField({ text, label, placeholder, pause = 400, children }: Props) {
  const [draft, setDraft] = useState(text);
  const settled = useDebounced(draft, pause);
  // Back, forward and links change the address: the field follows.
  useEffect(() => setDraft(text), [text]);
  useEffect(() => {
    if (settled === draft && settled !== text) changeAddress({ q: settled }, { replace: text !== "" && settled !== "" });
    // The address follows the draft once it has settled; changes of the address itself are not answered here.
  }, [settled]);
  return (
    <div className="search">
      <Icon name="search" />
      <input
        type="search"
        dir="auto"
        aria-label={label}
        placeholder={placeholder}
        value={draft}
        maxLength={2000}
        spellCheck={false}
        onChange={(event) => {
          askForFirst(null);
          setDraft(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          // Else the key would press what has the focus next.
          event.preventDefault();
          changeAddress({ q: draft }, { replace: text !== "" });
          askForFirst(draft);
        }}
      />
      {children}
    </div>
  );
}
