import { useRef } from "react";
import { type Changes, changeAddress } from "./address";
import { focusLine, focusTitle, useFocusBack } from "./focus";
import { useFirst } from "./search";
import { type Shortcuts, useShortcuts } from "./shortcuts";

type Step = 1 | -1;

/** The place in a list that a step leads to: from what is open or was last, or from where that stood if it is gone. */
export function useStepping(ids: readonly string[], open: string | null): (step: Step) => number {
  const last = useRef({ id: "", place: -1 });
  const place = ids.indexOf(open ?? last.current.id);
  if (place !== -1) last.current = { id: ids[place] ?? "", place };
  return (step) => {
    const gone = place === -1 && open !== null && open === last.current.id;
    const from = gone ? last.current.place - (step === 1 ? 1 : 0) : place;
    return Math.max(0, Math.min(ids.length - 1, from + step));
  };
}

interface Listed {
  /** The parameter of the address that names the open item. */
  readonly parameter: string;
  readonly ids: readonly string[];
  readonly open: string | null;
  readonly lineOf: (id: string) => string;
  /** Shows or fetches the lines up to a place, before the keys go there. */
  readonly reach?: (place: number) => void;
  /** False while the list still answers an earlier search. */
  readonly settled?: boolean;
  /** Returns further changes of the address that belong to the open item; without an id, those for none. */
  readonly others?: (id: string | null) => Changes;
}

/** The keys of a list beside which one item is open; returns what closes the item. */
export function useListKeys({ parameter, ids, open, lineOf, reach, settled = true, others }: Listed, more: Shortcuts = {}): () => void {
  const place = useStepping(ids, open);
  const move = (step: Step) => {
    const next = place(step);
    reach?.(next);
    const id = ids[next];
    if (id) changeAddress({ [parameter]: id, ...others?.(id) }, { replace: open !== null, follow: !focusLine(lineOf(id)) });
  };
  const close = () => {
    if (open !== null) changeAddress({ [parameter]: null, ...others?.(null) });
  };
  useFirst(settled, () => {
    const [first] = ids;
    if (!first) return;
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (first === open) focusTitle();
    else changeAddress({ [parameter]: first, ...others?.(first) }, { replace: open !== null, follow: true });
  });
  useFocusBack(open, lineOf, ".list");
  useShortcuts({ j: () => move(1), k: () => move(-1), Escape: close, ...more });
  return close;
}
