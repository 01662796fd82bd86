import type { UseQueryResult } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { hideSecret, useMadeKey, useRevokeKey, useRotateKey } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { CopyButton } from "../../parts/CopyButton";
import { Choice } from "../../parts/Field";
import { exactMoment } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { DetailPane, Details, OpenedPane, PaneTitle } from "../../parts/pane";
import { Empty, Working } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { changeAddress, linkWith } from "../../state/address";
import { endOf, lastUseOf, limitOf, servedBy, standingOf } from "./Keys";

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

const HOUR = 3600;
const OVERLAPS: readonly (readonly [number, string])[] = [
  [0, "not at all"],
  [HOUR, "for 1 hour"],
  [24 * HOUR, "for 1 day"],
  [7 * 24 * HOUR, "for 7 days"],
  [30 * 24 * HOUR, "for 30 days"],
];

/** Ends an active key at once, or once another has taken its place. */
function KeyActions({ item }: { readonly item: StoredKey }) {
  return (
    <>
      <Rotation item={item} />
      <Revocation item={item} />
    </>
  );
}

function Rotation({ item }: { readonly item: StoredKey }) {
  const [overlap, setOverlap] = useState(24 * HOUR);
  const rotate = useRotateKey();
  const rotated = ({ key }: { readonly key: StoredKey }) => changeAddress({ key: key.id }, { follow: true });
  return (
    <p className="note-actions key-actions">
      <button
        type="button"
        disabled={rotate.isPending}
        onClick={() => rotate.mutate({ params: { path: { key_id: item.id } }, body: { overlap_seconds: overlap } }, { onSuccess: rotated })}
      >
        <Icon name="restore" />
        Rotate
      </button>
      <label>
        The old secret stays valid{" "}
        <Choice
          value={String(overlap)}
          set={(seconds) => setOverlap(Number(seconds))}
          options={OVERLAPS.map(([seconds, name]) => [String(seconds), name])}
        />
      </label>
      {rotate.isPending && <Working what="Rotating" />}
    </p>
  );
}

function Revocation({ item }: { readonly item: StoredKey }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const revoke = useRevokeKey(item.name);
  const close = () => dialog.current?.close();
  return (
    <div className="note-actions">
      <button type="button" className="danger" disabled={revoke.isPending} onClick={() => dialog.current?.showModal()}>
        <Icon name="trash" />
        Revoke …
      </button>
      {revoke.isPending && <Working what="Revoking" />}
      <dialog ref={dialog} aria-labelledby="revoke-title" closedby="any">
        <div className="dialog-head">
          <h2 id="revoke-title">
            Revoke the key <OneLine text={item.name} />?
          </h2>
        </div>
        <p>Whoever uses it is refused within five seconds. Nobody can undo this. If it is your own key, this page asks for another one.</p>
        <p className="note-actions">
          <button type="button" autoFocus onClick={close}>
            Keep it
          </button>
          <button
            type="button"
            className="danger"
            onClick={() => {
              close();
              revoke.mutate({ params: { path: { key_id: item.id } } });
            }}
          >
            Revoke it for good
          </button>
        </p>
      </dialog>
    </div>
  );
}
