import { useEffect, useRef } from "react";
import { leave } from "./focusKeeper";

export type Shortcuts = Readonly<Record<string, () => void>>;

const TYPED_INTO = "input:not([type=checkbox], [type=range]), textarea, select, [contenteditable]";
const HELD: ReadonlySet<string> = new Set(["j", "k"]);
/** Keys that go on while they are held; a rating is one press. */

function fieldAround(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement ? target.closest<HTMLElement>(TYPED_INTO) : null;
}

/** Returns true where a key is a letter of a text. */
export function isTypedInto(target: EventTarget | null): boolean {
  return fieldAround(target) !== null;
}

/** Single keys, as long as nobody types or holds a modifier. Escape leaves a field first; an open dialog has every key. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open]") || (event.repeat && !HELD.has(event.key))) return;
      const field = fieldAround(event.target);
      const act = field ? event.key === "Escape" && (() => leave(field)) : latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
