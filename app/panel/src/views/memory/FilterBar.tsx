import { type ComponentProps, type ReactNode, useId, useState } from "react";
import { useService } from "../../api/client";
import { useFacets } from "../../api/queries";
import type { Facet } from "../../api/schema";
import { Choice, ChoiceField, Field } from "../../parts/Field";
import { capitalised } from "../../parts/format";
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

const NUMBERS = [
  { name: "quality", min: -3, max: 3, step: 1 },
  { name: "score", min: 0, max: 10, step: 0.5 },
] as const;

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
      {NUMBERS.map(({ name, ...limits }) => (
        <fieldset key={name} className="field range">
          <legend>{capitalised(name)}</legend>
          <Bound name={`min_${name}`} type="number" aria-label={`Minimum ${name}`} {...limits} />
          <span aria-hidden>–</span>
          <Bound name={`max_${name}`} type="number" aria-label={`Maximum ${name}`} {...limits} />
        </fieldset>
      ))}
      <Field label="Dated from">{(id) => <Bound id={id} name="since" type="date" />}</Field>
      <Field label="Dated to">{(id) => <Bound id={id} name="until" type="date" />}</Field>
    </div>
  );
}

interface ValuesProps {
  readonly name: string;
  readonly label: string;
  readonly values: readonly Facet[] | undefined;
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

/** An end of a range; its value is in the address. */
function Bound({ name, ...rest }: { readonly name: string } & Omit<ComponentProps<"input">, "value" | "onChange">) {
  const { params } = useAddress();
  const given = params.get(name) ?? "";
  const valid = isRead(name, given);
  return (
    <input
      aria-invalid={given !== "" && !valid}
      value={rest.type === "date" && !valid ? "" : given}
      onChange={(event) => changeAddress({ [name]: event.target.value }, { replace: params.has(name) })}
      {...rest}
    />
  );
}
