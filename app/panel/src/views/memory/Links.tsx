import { useAround } from "../../api/queries";
import type { Linked } from "../../api/schema";
import { capitalised } from "../../parts/format";
import { Link } from "../../parts/Link";
import { phraseOf } from "../../parts/relations";
import { Unshown } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkToMemory } from "../../state/address";
import { Apart } from "./Row";

const AT_ONCE = 8;
/** Links of one kind that are shown before the reader asks for all. */

/** The memory's links, by relation. */
export function Links({ id }: { readonly id: string }) {
  const found = useAround(id);
  const links = found.data?.links ?? [];
  if (found.data && links.length === 0) return null;
  return (
    <section aria-label="Links">
      <h3>Links</h3>
      <Unshown what="The links" query={found} />
      {[...new Set(links.map(phraseOf))].map((phrase) => (
        <Group key={phrase} phrase={phrase} links={links.filter((link) => phraseOf(link) === phrase)} />
      ))}
    </section>
  );
}

function Group({ phrase, links }: { readonly phrase: string; readonly links: readonly Linked[] }) {
  return (
    <div className="linked">
      <h4>{capitalised(phrase)}</h4>
      <Items links={links.slice(0, AT_ONCE)} />
      {links.length > AT_ONCE && (
        <details>
          <summary>{links.length - AT_ONCE} more</summary>
          <Items links={links.slice(AT_ONCE)} />
        </details>
      )}
    </div>
  );
}

function Items({ links }: { readonly links: readonly Linked[] }) {
  return (
    <ul>
      {links.map((link) => (
        <li key={`${link.relation} ${link.direction} ${link.memory_id}`}>
          <Link href={linkToMemory(link.memory_id)}>
            <OneLine text={link.title} />
          </Link>
          {link.weight < 1 && <span className="muted">{link.weight.toFixed(2)}</span>}
          <Apart {...link} />
        </li>
      ))}
    </ul>
  );
}
