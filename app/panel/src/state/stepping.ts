import { useRef } from "react";

export type Step = 1 | -1;

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
