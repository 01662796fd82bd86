import type { UseQueryResult } from "@tanstack/react-query";
import { hideSecret, useMadeKey } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { CopyButton } from "../../parts/CopyButton";
import { DetailPane, OpenedPane } from "../../parts/DetailPane";
import { Details } from "../../parts/Details";
import { exactMoment } from "../../parts/format";
import { Link } from "../../parts/Link";
import { OneLine } from "../../parts/OneLine";
import { PaneTitle } from "../../parts/PaneTitle";
import { Empty } from "../../parts/states";
import { linkWith } from "../../state/address";
import { KeyActions } from "./KeyActions";
import { endOf, lastUseOf, limitOf, servedBy, standingOf } from "./standing";

interface Props {
  readonly id: string;
  readonly query: UseQueryResult<readonly StoredKey[]>;
  readonly onClose: () => void;
}

/** One key: what it may do, its secret while that is shown, and how it ends. */
export function KeyDetail({ id, query, onClose }: Props) {
  if (query.data && !query.isFetching && !query.data.some((key) => key.id === id)) return <Missing onClose={onClose} />;
  return (
    <OpenedPane name="API key" query={query} onClose={onClose}>
      {(keys) => keys.filter((key) => key.id === id).map((key) => <Whole key={id} item={key} keys={keys} />)}
    </OpenedPane>
  );
}

function Missing({ onClose }: { readonly onClose: () => void }) {
  return (
    <DetailPane label="API key" onClose={onClose}>
      <Empty title="There is no such key">It is not among those that your own key manages.</Empty>
    </DetailPane>
  );
}

function Whole({ item, keys }: { readonly item: StoredKey; readonly keys: readonly StoredKey[] }) {
  const next = keys.find(({ replaces }) => replaces === item.id);
  const standing = standingOf(item);
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={item.name} />
        </PaneTitle>
        <p className="row-facts">
          <span className="cue-state">{standing}</span>
          <span>{endOf(item)}</span>
          <span>{lastUseOf(item)}</span>
        </p>
        <Secret id={item.id} />
        {standing === "active" && <KeyActions item={item} />}
      </header>
      <Details
        facts={[
          ["Scopes", item.scopes.join(", ")],
          ["Workspaces", servedBy(item)],
          ["Limit", limitOf(item) ?? "that of the service"],
          ["Made", exactMoment(item.created_at)],
          ["Expires", item.expires_at && exactMoment(item.expires_at)],
          ["Revoked", item.revoked_at && exactMoment(item.revoked_at)],
          ["ID", item.id],
        ]}
        metadata={{}}
      >
        {next && (
          <p>
            <Link href={linkWith({ key: next.id })}>Open the key that replaces it</Link>
          </p>
        )}
        {item.replaces && (
          <p>
            <Link href={linkWith({ key: item.replaces })}>Open the key that it replaces</Link>
          </p>
        )}
      </Details>
    </article>
  );
}

/** The secret of a key that was just made. */
function Secret({ id }: { readonly id: string }) {
  const made = useMadeKey();
  if (made?.key.id !== id) return null;
  return (
    <section className="key-secret" aria-label="Secret">
      <p>This secret is shown this once. Copy it now: the service keeps only its hash.</p>
      <pre tabIndex={0}>{made.secret}</pre>
      <p className="note-actions">
        <CopyButton text={made.secret} />
        <button type="button" className="quiet" onClick={hideSecret}>
          Hide it for good
        </button>
      </p>
    </section>
  );
}
