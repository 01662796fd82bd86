import { type FormEvent, useId, useState } from "react";
import { useLinking } from "../../api/acts";
import { Field } from "../../parts/Field";

const SUGGESTED = ["contradicts", "refines", "causes", "derived_from", "supersedes"];
const RELATION = "[a-z][a-z0-9_]{0,39}";
const ID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

/** The form that links the memory with another one, closed until it is asked for. */
export function AddLink({ id }: { readonly id: string }) {
  const [relation, setRelation] = useState("");
  const [other, setOther] = useState("");
  const names = useId();
  const adding = useLinking("add");
  const add = (event: FormEvent) => {
    event.preventDefault();
    const link = { from_id: id, to_id: other.trim(), relation: relation.trim(), weight: 1 };
    adding.mutate(link, { onSuccess: () => setOther("") });
  };
  return (
    <details className="add-link">
      <summary>Add a link</summary>
      <form onSubmit={add}>
        <Field label="This memory …">
          {(field) => (
            <input
              id={field}
              list={names}
              value={relation}
              required
              pattern={RELATION}
              title="Lower-case letters, digits and _, a letter first, at most 40"
              placeholder="contradicts"
              onChange={(event) => setRelation(event.target.value)}
            />
          )}
        </Field>
        <datalist id={names}>
          {SUGGESTED.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <Field label="ID of the other memory">
          {(field) => (
            <input
              id={field}
              value={other}
              required
              pattern={`\\s*${ID}\\s*`}
              title="As the other memory's details show it"
              onChange={(event) => setOther(event.target.value)}
            />
          )}
        </Field>
        <button type="submit" disabled={adding.isPending}>
          Add
        </button>
      </form>
    </details>
  );
}
