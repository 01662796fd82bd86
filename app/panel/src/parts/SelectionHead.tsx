import { whole } from "./format";

interface Props {
  /** What is said while nothing is selected. */
  readonly count: string;
  /** What is said of the selection; empty while nothing is selected. */
  readonly selected: string;
  readonly ids: readonly string[];
  readonly choose: (chosen: ReadonlySet<string>) => void;
}

/** How much is listed or selected, and the means to select all or nothing. */
export function SelectionHead({ count, selected, ids, choose }: Props) {
  return (
    <>
      <p role="status">{selected || count}</p>
      {selected ? (
        <button type="button" className="quiet" title="Clear the selection (Esc)" onClick={() => choose(new Set())}>
          Clear
        </button>
      ) : (
        <button type="button" className="quiet" disabled={ids.length === 0} onClick={() => choose(new Set(ids))}>
          Select all {whole(ids.length)}
        </button>
      )}
    </>
  );
}
