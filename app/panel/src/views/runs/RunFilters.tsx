import type { RunSummary } from "../../api/types";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { type Asked, FILTERS, NAMES, valuesOf } from "./asked";

const PAUSE_MILLISECONDS = 200;
/** After the last key, before the table is searched. */

interface Props {
  readonly runs: readonly RunSummary[];
  readonly asked: Asked;
}

/** Narrows the table and the plot. */
export function RunFilters({ runs, asked }: Props) {
  const narrowed = asked.text !== "" || FILTERS.some((name) => asked.filters[name] !== "");
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={asked.text} label="Search runs" placeholder="Task, ID or issue" pause={PAUSE_MILLISECONDS} />
      {FILTERS.map((name) => {
        const [label, chosen] = [NAMES[name], asked.filters[name]];
        const values = withChosen(valuesOf(runs, name), chosen);
        return values.length > 0 && <Choice key={name} name={name} label={label} chosen={chosen} options={anyOf(label.toLowerCase(), values)} />;
      })}
      {narrowed && (
        <button type="button" className="quiet" onClick={() => changeAddress({ q: null, task_type: null, verdict: null, agent: null })}>
          Clear filters
        </button>
      )}
    </div>
  );
}
