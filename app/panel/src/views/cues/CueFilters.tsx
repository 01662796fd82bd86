import type { CueFilters as Filters } from "../../api/cues";
import type { Cue } from "../../api/types";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
import { FilterFrame } from "../../parts/FilterFrame";
import { KINDS, kindName, STATES } from "./asked";

interface Props {
  readonly filters: Filters;
  readonly cues: readonly Cue[];
}

export function CueFilters({ filters, cues }: Props) {
  // A type is `area` or `area:act`; the area stands for all of its acts.
  const types = withChosen(cues.flatMap(({ action_types }) => action_types.flatMap((type) => [type, type.split(":", 1)[0] ?? ""])), filters.action_type);
  return (
    <FilterFrame filters={filters} label="Search cues" placeholder="Trigger or lesson" chips={{ session: "Session" }}>
      <Choice name="kind" label="Kind" chosen={filters.kind} options={anyOf("kind", KINDS, kindName)} />
      <Choice name="action_type" label="Action type" chosen={filters.action_type} options={anyOf("action type", types)} />
      <Choice name="state" label="State" chosen={filters.state} options={anyOf("state", STATES)} />
    </FilterFrame>
  );
}
