import { go, linkTo } from "./address";

/** Leads to the search of the Memories view, from views that have none. */
export function searchMemories(): void {
  go(linkTo("/"));
  requestAnimationFrame(() => document.querySelector<HTMLElement>("input[type=search]")?.focus());
}

/** Selects the text of the view's own search; leads to that of the Memories view while it has none. */
export function searchHere(): void {
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (field) field.select();
  else searchMemories();
}
