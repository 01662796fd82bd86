import type { RecallFilters as Filters } from "../../api/recalls";
import type { RecallSummary } from "../../api/types";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
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
      <Choice name="agent" label="Agent" chosen={filters.agent} options={anyOf("agent", agents)} />
      <Choice name="mode" label="Mode" chosen={filters.mode} options={anyOf("mode", MODES)} />
      <Choice name="purpose" label="Purpose" chosen={filters.purpose} options={anyOf("purpose", purposes)} />
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
