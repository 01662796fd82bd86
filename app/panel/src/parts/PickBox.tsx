import { withShift } from "./choice";

interface Props {
  readonly title: string;
  readonly chosen: boolean;
  readonly pick: (range: boolean) => void;
}

/** The checkbox of a row; with Shift it selects a range. */
export function PickBox({ title, chosen, pick }: Props) {
  return (
    <label className="pick">
      <input type="checkbox" checked={chosen} onChange={(event) => pick(withShift(event))} aria-label={`Select ${title}`} />
    </label>
  );
}
