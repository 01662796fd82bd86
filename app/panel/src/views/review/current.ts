import { useState } from "react";
import { focusLine } from "../../state/focus";

export function lineOf(id: string): string {
  return `case-${id}`;
}

/** The case at which the keys are, and the function that moves them to the next or the previous one. */
export function useCurrent(ids: readonly string[]): readonly [string | undefined, (step: 1 | -1) => void] {
  const [at, setAt] = useState(-1);
  const place = Math.min(at, ids.length - 1);
  const move = (step: 1 | -1) => {
    const next = Math.max(0, Math.min(ids.length - 1, place + step));
    setAt(next);
    focusLine(lineOf(ids[next] ?? ""));
  };
  return [ids[place], move];
}

/** The first item after those that go away; the last one before them if they were the end. */
export function nextAfter(all: readonly string[], gone: readonly string[]): string | undefined {
  const going = new Set(gone);
  const last = all.findLastIndex((id) => going.has(id));
  return all.slice(last + 1)[0] ?? all.findLast((id) => !going.has(id));
}

/** Moves the focus to a case, or to the list if it is empty; the reader may have moved it elsewhere since. */
export function focusNext(next: string | undefined): void {
  if (document.activeElement?.closest(".cases, .tabs, header, input, textarea")) return;
  if (!next || !focusLine(lineOf(next))) document.querySelector<HTMLElement>(".review")?.focus({ preventScroll: true });
}
