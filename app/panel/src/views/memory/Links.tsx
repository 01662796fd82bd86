import { type FormEvent, useId } from "react";
import { useLinking } from "../../api/acts";
import { useAround } from "../../api/queries";
import type { Linked } from "../../api/schema";
import { TextField } from "../../parts/Field";
import { capitalised } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { byPhrase, isGiven } from "../../parts/relations";
import { Unshown } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkWith } from "../../state/address";
import { useDraft } from "../../state/draft";

const AT_ONCE = 8;
/** Links of one kind that are shown before the reader asks for all. */

/** The memory's links, by relation. */
export function Links({ id }: { readonly id: string }) {
  const found = useAround(id);
  if (found.data?.links.length === 0) return null;
  return (
    <section aria-label="Links">
      <h3>Links</h3>
      <Unshown what="The links" query={found} />
      {[...byPhrase(found.data?.links ?? [])].map(([phrase, group]) => (
        <div key={phrase} className="linked">
          <h4>{capitalised(phrase)}</h4>
          <Items id={id} links={group.slice(0, AT_ONCE)} />
          {group.length > AT_ONCE && (
            <details>
              <summary>{group.length - AT_ONCE} more</summary>
              <Items id={id} links={group.slice(AT_ONCE)} />
            </details>
          )}
        </div>
      ))}
    </section>
  );
}

function Items({ id, links }: { readonly id: string; readonly links: readonly Linked[] }) {
  const removing = useLinking("remove");
  return (
    <ul>
      {links.map(({ relation, direction, memory_id, title, weight }) => (
        <li key={`${relation} ${direction} ${memory_id}`}>
          <Link href={linkWith({ memory: memory_id })}>
            <OneLine text={title} />
          </Link>
          {weight < 1 && <span className="muted">{weight.toFixed(2)}</span>}
          {isGiven(relation) && (
            <button
              type="button"
              className="icon"
              disabled={removing.isPending}
              onClick={() => {
                const [from_id, to_id] = direction === "out" ? [id, memory_id] : [memory_id, id];
                removing.mutate({ from_id, to_id, relation, weight });
              }}
            >
              <Icon name="close" label={`Remove the link to ${title}`} />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

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
