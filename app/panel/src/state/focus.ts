/** Moves the focus as a pane opens and closes. */

import { useEffect, useRef } from "react";
import { wasFollowed } from "./address";
import { isFocusLost } from "./focusKeeper";

function linkOf(line: string): HTMLElement | null {
  return document.getElementById(line)?.querySelector<HTMLElement>("a") ?? null;
}

/** Focuses the link of a line, by the line's id; false where it is not there or not visible. */
export function focusLine(line: string): boolean {
  const link = linkOf(line);
  link?.focus({ preventScroll: true });
  return link !== null && document.activeElement === link;
}

export function focusTitle(): void {
  document.querySelector<HTMLElement>(".pane-detail h2")?.focus();
}

/** The title of what a link opened has the focus; one that keys only passed leaves it in the list, as long as that is seen. */
export function useTitleFocus() {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const active = document.activeElement;
    if (active?.matches("input, textarea, select")) return;
    // A list that is hidden beside the pane has lost the focus: to nothing at first, then to the page around it.
    const isLost = active?.id === "main" || active?.checkVisibility() === false || isFocusLost();
    if (wasFollowed() || isLost) title.current?.focus({ preventScroll: true });
  }, []);
  return title;
}

/** Moves the focus to the line of the closed item as the pane closes, or to the list if there is no such line. */
export function useFocusBack(open: string | null, lineOf: (id: string) => string, otherwise: string): void {
  const before = useRef(open);
  useEffect(() => {
    const closed = open === null ? before.current : null;
    before.current = open;
    if (closed === null || document.activeElement?.matches("input, textarea, select")) return;
    const back = linkOf(lineOf(closed)) ?? document.querySelector<HTMLElement>(otherwise);
    back?.focus();
  }, [open]);
}
