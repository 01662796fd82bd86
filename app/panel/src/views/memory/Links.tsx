import { useLinking } from "../../api/acts";
import { useAround } from "../../api/queries";
import type { Linked } from "../../api/schema";
import { capitalised } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { byPhrase, isGiven } from "../../parts/relations";
import { Unshown } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkWith } from "../../state/address";

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
