import type { RunSummary } from "../../api/types";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { type Asked, type Filter, FILTERS, NAMES, valuesOf } from "./asked";

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
      {FILTERS.map((name) => (
        <Choice key={name} name={name} values={valuesOf(runs, name)} chosen={asked.filters[name]} />
      ))}
      {narrowed && (
        <button type="button" className="quiet" onClick={() => changeAddress({ q: null, task_type: null, verdict: null, agent: null })}>
          Clear filters
        </button>
      )}
    </div>
  );
}

interface ChoiceProps {
  readonly name: Filter;
  readonly values: readonly string[];
  readonly chosen: string;
}

function Choice({ name, values, chosen }: ChoiceProps) {
  const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
  if (all.length === 0) return null;
  return (
    <label>
      <span className="visually-hidden">{NAMES[name]}</span>
      <select value={chosen} onChange={(event) => changeAddress({ [name]: event.target.value })}>
        <option value="">Any {NAMES[name].toLowerCase()}</option>
        {all.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    </label>
  );
}
