/** Selections of a list. */

import { useRef } from "react";

export type Selection = ReadonlySet<string>;

/** The selection with this one in it if it was not, without it if it was. */
export function toggled<T>(chosen: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const next = new Set(chosen);
  if (!next.delete(one)) next.add(one);
  return next;
}

/** The selection with everything from one item of a list to another. */
function withRange(chosen: Selection, ids: readonly string[], from: string, to: string): Selection {
  const [first = 0, last = 0] = [ids.indexOf(from), ids.indexOf(to)].sort((one, other) => one - other);
  return new Set([...chosen, ...ids.slice(Math.max(0, first), last + 1)]);
}

type Pick = (id: string, range: boolean) => Selection;

/** Selects one item, or with Shift all from the last one that was selected to this one. */
export function usePicking(ids: readonly string[], chosen: Selection, choose: (chosen: Selection) => void): Pick {
  const last = useRef<string | null>(null);
  return (id, range) => {
    const from = last.current !== null && ids.includes(last.current) ? last.current : null;
    const next = range && from !== null ? withRange(chosen, ids, from, id) : toggled(chosen, id);
    last.current = id;
    choose(next);
    return next;
  };
}

/** Says if Shift is held while a checkbox changes. */
export function withShift({ nativeEvent }: { readonly nativeEvent: Event }): boolean {
  return nativeEvent instanceof MouseEvent && nativeEvent.shiftKey;
}
