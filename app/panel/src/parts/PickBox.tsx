import { withShift } from "./choice";

interface Props {
  readonly title: string;
  readonly chosen: boolean;
  /** False if Tab passes it by. */
  readonly stop?: boolean;
  readonly pick: (range: boolean) => void;
}

/** The checkbox of a row; with Shift it selects a range. */
export function PickBox({ title, chosen, stop = true, pick }: Props) {
  return (
    <label className="pick">
      <input
        type="checkbox"
        tabIndex={stop ? 0 : -1}
        checked={chosen}
        onChange={(event) => pick(withShift(event))}
        aria-label={`Select ${title}`}
      />
    </label>
  );
}
