import type { RecallFilters as Filters } from "../../api/recalls";
import type { RecallSummary } from "../../api/types";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
import { FilterFrame } from "../../parts/FilterFrame";
import { MODES, OUTCOMES } from "./asked";

interface Props {
  readonly filters: Filters;
  readonly recalls: readonly RecallSummary[];
}

export function RecallFilters({ filters, recalls }: Props) {
  const agents = withChosen(recalls.map(({ agent }) => agent), filters.agent);
  const purposes = withChosen(recalls.map(({ purpose }) => purpose), filters.purpose);
  return (
    <FilterFrame filters={filters} label="Search queries" placeholder="Words of the query" chips={{ run_id: "Run" }}>
      <Choice name="outcome" label="Outcome" chosen={filters.outcome} options={OUTCOMES} />
      <Choice name="agent" label="Agent" chosen={filters.agent} options={anyOf("agent", agents)} />
      <Choice name="mode" label="Mode" chosen={filters.mode} options={anyOf("mode", MODES)} />
      <Choice name="purpose" label="Purpose" chosen={filters.purpose} options={anyOf("purpose", purposes)} />
    </FilterFrame>
  );
}
