import { useEffect } from "react";
import { go, linkTo, useAddress } from "./address";
import { storeOf } from "./store";

const SEARCH = "input[type=search]";

/** Selects the text of the search where one is: of the open pane, else of the place; leads to that of Memory while it has none. */
export function searchHere(): void {
  const pane = document.activeElement?.closest(".pane-detail");
  const field = pane?.querySelector<HTMLInputElement>(SEARCH) ?? document.querySelector<HTMLInputElement>(`main ${SEARCH}`);
  if (field) field.select();
  else {
    go(linkTo("/memory"), { follow: true });
    focusSearch(20);
  }
}

/** The place may still be loaded: its field is looked for a few times. */
function focusSearch(left: number): void {
  const field = document.querySelector<HTMLInputElement>(`main ${SEARCH}`);
  if (field) field.focus();
  else if (left > 0) window.setTimeout(() => focusSearch(left - 1), 50);
}

const wanted = storeOf<string | null>(null);

/** Asks for the first match of a search, once it is found; null asks for none. */
export function askForFirst(text: string | null): void {
  wanted.set(text?.trim() ?? null);
}

/** Opens the first match where one was asked for and what the address searches for has been found. */
export function useFirst(found: boolean, open: () => void): void {
  const asked = wanted.use();
  const text = (useAddress().params.get("q") ?? "").trim();
  useEffect(() => {
    if (asked === null || asked !== text || !found) return;
    wanted.set(null);
    open();
  });
}
