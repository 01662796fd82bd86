import { type FormEvent, useId } from "react";
import { useLinking } from "../../api/acts";
import { TextField } from "../../parts/Field";
import { useDraft } from "../../state/draft";

const SUGGESTED = ["contradicts", "refines", "causes", "derived_from", "supersedes"];
const RELATION = "[a-z][a-z0-9_]{0,39}";
const ID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

/** The form that links the memory with another one, closed until it is asked for. */
export function AddLink({ id }: { readonly id: string }) {
  const [{ relation, other }, set] = useDraft(`link ${id}`, { relation: "", other: "" });
  const names = useId();
  const adding = useLinking("add");
  const add = (event: FormEvent) => {
    event.preventDefault();
    const link = { from_id: id, to_id: other.trim(), relation: relation.trim(), weight: 1 };
    adding.mutate(link, { onSuccess: () => set({ relation, other: "" }) });
  };
  return (
    <details className="add-link">
      <summary>Add a link</summary>
      <form onSubmit={add}>
        <TextField
          label="This memory …"
          list={names}
          required
          pattern={RELATION}
          title="Lower-case letters, digits and _, a letter first, at most 40"
          placeholder="contradicts"
          value={relation}
          set={(name) => set({ relation: name, other })}
        />
        <datalist id={names}>
          {SUGGESTED.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <TextField
          label="ID of the other memory"
          required
          pattern={`\\s*${ID}\\s*`}
          title="As the other memory's details show it"
          value={other}
          set={(named) => set({ relation, other: named })}
        />
        <button type="submit" disabled={adding.isPending}>
          Add
        </button>
      </form>
    </details>
  );
}
