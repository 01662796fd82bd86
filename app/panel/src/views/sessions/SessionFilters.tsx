import { useId } from "react";
import type { SessionFilters as Filters } from "../../api/sessions";
import { FilterFrame } from "../../parts/FilterFrame";
import { changeAddress } from "../../state/address";

export function SessionFilters({ filters }: { readonly filters: Filters }) {
  return (
    <FilterFrame filters={filters} label="Search sessions" placeholder="What was said" chips={{ path: "File" }}>
      <Day name="since" label="From" chosen={filters.since} />
      <Day name="until" label="To" chosen={filters.until} />
    </FilterFrame>
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
