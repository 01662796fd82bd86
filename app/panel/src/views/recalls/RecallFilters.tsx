import type { RecallFilters as Filters } from "../../api/recalls";
import type { RecallSummary } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { MODES, NO_FILTERS, OUTCOMES } from "./asked";

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the log is asked. */

interface Props {
  readonly filters: Filters;
  readonly recalls: readonly RecallSummary[];
}

export function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}

export function RecallFilters({ filters, recalls }: Props) {
  const agents = withChosen(recalls.map(({ agent }) => agent), filters.agent);
  const purposes = withChosen(recalls.map(({ purpose }) => purpose), filters.purpose);
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={filters.text} label="Search queries" placeholder="Words of the query" pause={PAUSE_MILLISECONDS} />
      <Choice name="outcome" label="Outcome" chosen={filters.outcome} options={OUTCOMES} />
      <Choice name="agent" label="Agent" chosen={filters.agent} options={any("agent", agents)} />
      <Choice name="mode" label="Mode" chosen={filters.mode} options={any("mode", MODES)} />
      <Choice name="purpose" label="Purpose" chosen={filters.purpose} options={any("purpose", purposes)} />
      {filters.run_id && (
        <button type="button" className="chip" onClick={() => changeAddress({ run_id: null })}>
          Run: {filters.run_id}
          <Icon name="close" label="Remove" />
        </button>
      )}
      {isNarrowed(filters) && (
        <button type="button" className="quiet" onClick={() => changeAddress(NO_FILTERS)}>
          Clear filters
        </button>
      )}
    </div>
  );
}

interface Option {
  readonly value: string;
  readonly label: string;
}

function any(name: string, values: readonly string[]): readonly Option[] {
  return [{ value: "", label: `Any ${name}` }, ...values.map((value) => ({ value, label: value }))];
}

function withChosen(values: readonly (string | null)[], chosen: string): readonly string[] {
  return [...new Set([...values, chosen])].filter((value): value is string => Boolean(value)).sort();
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly chosen: string;
  readonly options: readonly Option[];
}

function Choice({ name, label, chosen, options }: ChoiceProps) {
  return (
    <label>
      <span className="visually-hidden">{label}</span>
      <select value={chosen} onChange={(event) => changeAddress({ [name]: event.target.value })}>
        {options.map(({ value, label: shown }) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}
