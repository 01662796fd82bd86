import type { RunSummary } from "../../api/schema";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
import { FilterFrame } from "../../parts/FilterFrame";
import { type Filters, NAMES, VALUED, valuesOf } from "./asked";

interface Props {
  readonly runs: readonly RunSummary[];
  readonly filters: Filters;
}

/** Narrows the table and the plot. */
export function RunFilters({ runs, filters }: Props) {
  return (
    <FilterFrame filters={filters} label="Search runs" placeholder="Task, ID or issue">
      {VALUED.map((name) => {
        const [label, chosen] = [NAMES[name], filters[name]];
        const values = withChosen(valuesOf(runs, name), chosen);
        return values.length > 0 && <Choice key={name} name={name} label={label} chosen={chosen} options={anyOf(label.toLowerCase(), values)} />;
      })}
    </FilterFrame>
  );
}
