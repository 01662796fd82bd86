import { useId } from "react";
import type { SessionFilters as Filters } from "../../api/sessions";
import { Icon } from "../../parts/Icon";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { NO_FILTERS } from "./asked";

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the sessions are searched. */

export function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}

export function SessionFilters({ filters }: { readonly filters: Filters }) {
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={filters.text} label="Search sessions" placeholder="What was said" pause={PAUSE_MILLISECONDS} />
      <Day name="since" label="From" chosen={filters.since} />
      <Day name="until" label="To" chosen={filters.until} />
      {filters.path && (
        <button type="button" className="chip" onClick={() => changeAddress({ path: null })}>
          File: {filters.path}
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

interface DayProps {
  readonly name: string;
  readonly label: string;
  readonly chosen: string;
}

function Day({ name, label, chosen }: DayProps) {
  const id = useId();
  return (
    <span className="inline-field">
      <label htmlFor={id}>{label}</label>
      <input id={id} type="date" value={chosen} onChange={(event) => changeAddress({ [name]: event.target.value })} />
    </span>
  );
}
