import type { RunSummary } from "../../api/schema";
import { Choice } from "../../parts/Field";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { type Filters, isNarrowed, NAMES, VALUED, valuesOf } from "./asked";

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the list is narrowed. */

interface Props {
  readonly runs: readonly RunSummary[];
  readonly filters: Filters;
}

/** Narrows the table and the plot: by words, and by values that runs have. */
export function RunFilters({ runs, filters }: Props) {
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={filters.text} label="Search runs" placeholder="Task, ID or issue" pause={PAUSE_MILLISECONDS} />
      {VALUED.map((name) => (
        <Valued key={name} name={name} chosen={filters[name]} values={valuesOf(runs, name, filters[name])} />
      ))}
      {isNarrowed(filters) && (
        <button type="button" className="quiet" onClick={() => changeAddress({ q: null, task_type: null, verdict: null, agent: null })}>
          Clear filters
        </button>
      )}
    </div>
  );
}

interface ValuedProps {
  readonly name: (typeof VALUED)[number];
  readonly chosen: string;
  readonly values: readonly string[];
}

function Valued({ name, chosen, values }: ValuedProps) {
  if (values.length === 0) return null;
  return (
    <Choice
      aria-label={NAMES[name]}
      value={chosen}
      set={(value) => changeAddress({ [name]: value })}
      options={[["", `Any ${NAMES[name].toLowerCase()}`], ...values.map((value) => [value, value] as const)]}
    />
  );
}
