import { ApiError } from "../../api/client";
import { useKeys } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { day, exactMoment, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { ListPane, ListRow } from "../../parts/list";
import { Empty } from "../../parts/states";
import { changeAddress, linkWith, useAddress } from "../../state/address";
import { changeKey } from "../../state/session";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { KeyDetail } from "./KeyDetail";
import { NewKey } from "./KeyForm";

const NEW = "new";
const FORBIDDEN = 403;

function make(): void {
  changeAddress({ key: NEW }, { follow: true });
}

/** The API keys that the reader's own may manage, and beside them the one that is open. */
export function Keys() {
  const open = useAddress().params.get("key");
  const query = useKeys();
  const keys = query.data ?? [];
  const refused = query.error instanceof ApiError && query.error.status === FORBIDDEN ? query.error.message : null;
  const close = useListKeys({ parameter: "key", ids: keys.map(({ id }) => id), open, lineOf }, refused === null ? { n: make } : {});
  useTitle("API keys");
  if (refused !== null) return <Refused reason={refused} />;
  return (
    <div className={`runs ${open ? "with-detail" : ""}`}>
      <ListPane name="API keys" query={query} nothing={query.isSuccess && keys.length === 0 && <Nothing />} toolbar={<Toolbar />}>
        <ol>
          {keys.map((key) => (
            <Row key={key.id} item={key} open={key.id === open} />
          ))}
        </ol>
      </ListPane>
      {open === NEW
        ? query.isSuccess && <NewKey keys={keys} onClose={close} />
        : open && <KeyDetail key={open} id={open} query={query} onClose={close} />}
    </div>
  );
}

function lineOf(id: string): string {
  return `key-${id}`;
}

function Toolbar() {
  return (
    <p className="note-actions">
      <button type="button" onClick={make} title="Make a key (n)">
        <Icon name="plus" />
        Make a key
      </button>
    </p>
  );
}

function Nothing() {
  return (
    <Empty title="No API keys yet">
      <p>
        A key lets one client in, for some workspaces and with some scopes. From the first key on, each request needs one. The command{" "}
        <code>priors key create</code> makes keys, too.
      </p>
      <button type="button" className="primary" onClick={make}>
        Make the first key
      </button>
    </Empty>
  );
}

/** Shown to a reader whose own key may not manage keys. */
function Refused({ reason }: { readonly reason: string }) {
  return (
    <Empty title="Only a key with the scope admin manages keys">
      <p>
        The service says: {reason}. Enter an admin key, or use <code>priors key</code> on the machine of the service.
      </p>
      <button type="button" onClick={changeKey}>
        Enter another API key
      </button>
    </Empty>
  );
}

function Row({ item, open }: { readonly item: StoredKey; readonly open: boolean }) {
  const standing = standingOf(item);
  return (
    <ListRow
      line={lineOf(item.id)}
      href={linkWith({ key: item.id })}
      open={open}
      title={item.name}
      marks={standing !== "active" && <span className="cue-state">{standing}</span>}
      excerpt={`${item.scopes.join(", ")} in ${servedBy(item)}`}
      facts={
        <>
          <span>{endOf(item)}</span>
          <span className="dates">{lastUseOf(item)}</span>
        </>
      }
    />
  );
}

export type Standing = "active" | "expired" | "revoked";

export function standingOf({ revoked_at, expires_at }: StoredKey, now: number = Date.now()): Standing {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= now ? "expired" : "active";
}

export function servedBy({ workspaces }: StoredKey): string {
  return workspaces === null ? "all workspaces" : workspaces.join(", ");
}

/** The end of a key's life, as a short text. */
export function endOf(key: StoredKey): string {
  if (key.revoked_at !== null) return `revoked ${day(key.revoked_at)}`;
  if (key.expires_at === null) return "never expires";
  return `${standingOf(key) === "expired" ? "expired" : "expires"} ${exactMoment(key.expires_at)}`;
}

/** The limit of a key's use that is not the setting's, as a short text; null without one. */
export function limitOf({ requests_per_minute }: StoredKey): string | null {
  if (requests_per_minute === null) return null;
  return requests_per_minute === 0 ? "no limit of requests" : `${whole(requests_per_minute)} requests a minute`;
}

export function lastUseOf({ last_used_at }: StoredKey): string {
  return last_used_at === null ? "never used" : `last used ${exactMoment(last_used_at)}`;
}
