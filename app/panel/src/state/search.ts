import { go, linkTo } from "./address";

/** Selects the text of the place's own search; leads to that of Memory while it has none. */
export function searchHere(): void {
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (field) field.select();
  else {
    go(linkTo("/memory"), { follow: true });
    focusSearch(20);
  }
}

/** The place may still be loaded: its field is looked for a few times. */
function focusSearch(left: number): void {
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (field) field.focus();
  else if (left > 0) window.setTimeout(() => focusSearch(left - 1), 50);
}
