import type { CueFilters as Filters } from "../../api/cues";
import type { Cue } from "../../api/types";
import { anyOf, Choice, withChosen } from "../../parts/FilterChoice";
import { Icon } from "../../parts/Icon";
import { SearchField } from "../../parts/SearchField";
import { changeAddress } from "../../state/address";
import { KINDS, kindName, NO_FILTERS, STATES } from "./asked";

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the cues are searched. */

export function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}

interface Props {
  readonly filters: Filters;
  readonly cues: readonly Cue[];
}

export function CueFilters({ filters, cues }: Props) {
  // A type is `area` or `area:act`; the area stands for all of its acts.
  const types = withChosen(cues.flatMap(({ action_types }) => action_types.flatMap((type) => [type, type.split(":", 1)[0] ?? ""])), filters.action_type);
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={filters.text} label="Search cues" placeholder="Trigger or lesson" pause={PAUSE_MILLISECONDS} />
      <Choice name="kind" label="Kind" chosen={filters.kind} options={anyOf("kind", KINDS, kindName)} />
      <Choice name="action_type" label="Action type" chosen={filters.action_type} options={anyOf("action type", types)} />
      <Choice name="state" label="State" chosen={filters.state} options={anyOf("state", STATES)} />
      {filters.session && (
        <button type="button" className="chip" onClick={() => changeAddress({ session: null })}>
          Session: {filters.session}
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
