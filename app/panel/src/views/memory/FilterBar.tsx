import { type ReactNode, useId, useState } from "react";
import { useService } from "../../api/client";
import { useFacets } from "../../api/queries";
import type { FacetView } from "../../api/schema";
import { Choice, ChoiceField, Field } from "../../parts/Field";
import { withMinus } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { changeAddress, useAddress } from "../../state/address";
import { chipsOf, isRead, NO_FILTERS, SORTS, sortChanges, sortOf } from "./filters";

interface FilterBarProps {
  readonly searching: boolean;
  /** Begins a new note. */
  readonly write: () => void;
}

export function FilterBar({ searching, write }: FilterBarProps) {
  const { params } = useAddress();
  return (
    <Filtering>
      <button type="button" className="quiet" title="Write a note (n)" onClick={write}>
        <Icon name="plus" />
        New note
      </button>
      <label className="sort">
        <span className="visually-hidden">Order</span>
        <Choice
          value={searching ? "relevance" : sortOf(params)}
          disabled={searching}
          set={(sort) => changeAddress(sortChanges(sort))}
          options={searching ? [["relevance", "Best match first"]] : SORTS.map(({ value, label }) => [value, label])}
        />
      </label>
    </Filtering>
  );
}

/** The filters of the address, with a button that opens their fields and a chip for each. */
export function Filtering({ children }: { readonly children?: ReactNode }) {
  const { params } = useAddress();
  const given = chipsOf(params);
  const chips = given.filter((chip) => chip.inForce);
  const ignored = given.filter((chip) => !chip.inForce);
  const [open, setOpen] = useState(given.length > 0);
  const fields = useId();
  return (
    <div className="filtering">
      <div className="filter-line">
        <button type="button" className="quiet" aria-expanded={open} aria-controls={fields} onClick={() => setOpen(!open)}>
          <Icon name="filter" />
          Filters
          {chips.length > 0 && <span className="count">{chips.length}</span>}
        </button>
        {given.length > 0 && (
          <button type="button" className="quiet" onClick={() => changeAddress(NO_FILTERS)}>
            Clear filters
          </button>
        )}
        {children}
      </div>
      <div id={fields} hidden={!open}>
        {open && <Fields />}
      </div>
      {ignored.length > 0 && (
        <p className="problem" role="alert">
          Ignored because the value is not valid: {ignored.map((chip) => chip.label).join(", ")}
        </p>
      )}
      {chips.length > 0 && (
        <ul className="chips" aria-label="Active filters">
          {chips.map((chip) => (
            <li key={`${chip.name} ${chip.value}`}>
              <button type="button" className="chip" onClick={() => changeAddress(chip.without)}>
                {chip.label}
                <Icon name="close" label="Remove" />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Fields() {
  const facets = useFacets();
  const users = useService().useQuery("get", "/api/users").data?.users ?? [];
  const { params } = useAddress();
  return (
    <div className="filter-fields">
      <Values name="kind" label="Kind" values={facets.data?.kinds} />
      <Values name="task_type" label="Task type" values={facets.data?.task_types} />
      <Values name="verdict" label="Verdict" values={facets.data?.verdicts} />
      <Values name="tag" label="Tag" values={facets.data?.tags} />
      {users.length > 0 && (
        <ChoiceField
          label="User"
          value={params.get("user") ?? ""}
          set={(user) => changeAddress({ user })}
          options={[["", "Everyone"], ...users.map(({ name, memories }) => [name, `${name} (${memories})`] as const)]}
        />
      )}
      <Range label="Quality" name="quality" least={-3} most={3} step={1} />
      <Range label="Score" name="score" least={0} most={10} step={0.5} />
      <Field label="Dated from">{(id) => <Day id={id} name="since" />}</Field>
      <Field label="Dated to">{(id) => <Day id={id} name="until" />}</Field>
    </div>
  );
}

interface ValuesProps {
  readonly name: string;
  readonly label: string;
  readonly values: readonly FacetView[] | undefined;
}

/** Each choice adds to those made; the chips below take them away. */
function Values({ name, label, values = [] }: ValuesProps) {
  const { params } = useAddress();
  const chosen = params.getAll(name).filter((value) => isRead(name, value));
  const left = values.filter(({ value }) => !chosen.includes(value));
  return (
    <ChoiceField
      label={label}
      value=""
      disabled={left.length === 0}
      set={(value) => changeAddress({ [name]: [...chosen, value] })}
      options={[
        ["", chosen.length ? `${chosen.length} selected` : "Any"],
        ...left.map(({ value, count }) => [value, `${value} (${count})`] as const),
      ]}
    />
  );
}

interface RangeProps {
  readonly label: string;
  readonly name: string;
  readonly least: number;
  readonly most: number;
  readonly step: number;
}

function Range({ label, name, ...limits }: RangeProps) {
  return (
    <fieldset className="field range">
      <legend>{label}</legend>
      <End name={`min_${name}`} label={`Minimum ${label.toLowerCase()}`} {...limits} />
      <span aria-hidden>–</span>
      <End name={`max_${name}`} label={`Maximum ${label.toLowerCase()}`} {...limits} />
    </fieldset>
  );
}

function End({ name, label, least, most, step }: RangeProps) {
  const { params } = useAddress();
  const given = params.get(name) ?? "";
  return (
    <input
      type="number"
      aria-label={label}
      aria-invalid={given !== "" && !isRead(name, given)}
      title={withMinus(`From ${least} to ${most}`)}
      min={least}
      max={most}
      step={step}
      value={Number.isNaN(Number(given)) ? "" : given}
      onChange={(event) => changeAddress({ [name]: event.target.value }, { replace: params.has(name) })}
    />
  );
}

function Day({ id, name }: { readonly id: string; readonly name: string }) {
  const { params } = useAddress();
  const given = params.get(name) ?? "";
  return (
    <input
      id={id}
      type="date"
      value={isRead(name, given) ? given : ""}
      onChange={(event) => changeAddress({ [name]: event.target.value }, { replace: params.has(name) })}
    />
  );
}
