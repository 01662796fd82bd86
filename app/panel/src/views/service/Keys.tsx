import { useState } from "react";
import { ApiError, everywhere } from "../../api/client";
import type { MadeKey, StoredKey } from "../../api/schema";
import { CopyButton } from "../../parts/CopyButton";
import { day, exactMoment } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Answered, Empty } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";
import { OneLine } from "../../parts/text";
import { changeAddress, useAddress } from "../../state/address";
import { notify, notifyFailure } from "../../state/notices";
import { changeKey, madeKey } from "../../state/session";
import { useShortcuts } from "../../state/shortcuts";
import { useTitle } from "../../state/title";
import { KeyForm } from "./KeyForm";

const NEW = "new";
const FORBIDDEN = 403;
const { cache, queryOptions, useMutation, useQuery } = everywhere;

/** Keys belong to no workspace: they are the same in all of them. */
export function listAgain(): Promise<void> {
  return cache.invalidateQueries(queryOptions("get", "/api/keys"));
}

/** The API keys that the reader's own may manage; a new one is made above them. */
export function Keys() {
  const writing = useAddress().params.get("key") === NEW;
  const made = madeKey.use();
  const query = useQuery("get", "/api/keys", {}, {}, cache);
  const make = () => changeAddress({ key: NEW }, { follow: true });
  const close = () => changeAddress({ key: null });
  useShortcuts({ n: make, Escape: close });
  useTitle("API keys");
  if (query.error instanceof ApiError && query.error.status === FORBIDDEN) return <Refused reason={query.error.message} />;
  return (
    <section className="audit" aria-label="API keys">
      {made && <Secret made={made} />}
      <Answered query={query} name="list of API keys">
        {(keys) => (
          <>
            {writing ? (
              <KeyForm keys={keys} onClose={close} />
            ) : (
              <p className="note-actions">
                <button type="button" onClick={make} title="Make a key (n)">
                  <Icon name="plus" />
                  Make a key
                </button>
              </p>
            )}
            {keys.length > 0 ? (
              <Table label="API keys" columns={COLUMNS} rows={keys} keyOf={({ id }) => id} />
            ) : (
              <Empty title="No API keys yet">
                A key lets one client in, for some workspaces and with some scopes. From the first key on, each request needs one. The
                command <code>priors key create</code> makes keys, too.
              </Empty>
            )}
          </>
        )}
      </Answered>
    </section>
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

/** The secret of the key that was made last. */
function Secret({ made: { key, secret } }: { readonly made: MadeKey }) {
  return (
    <section className="key-secret" aria-label="Secret">
      <p>
        The secret of <OneLine text={key.name} /> is shown this once. Copy it now: the service keeps only its hash.
      </p>
      <pre tabIndex={0}>{secret}</pre>
      <p className="note-actions">
        <CopyButton text={secret} />
        <button type="button" className="quiet" onClick={() => madeKey.set(null)}>
          Hide it for good
        </button>
      </p>
    </section>
  );
}

const COLUMNS: readonly Column<StoredKey>[] = [
  { name: "Name", cell: ({ name }) => <OneLine text={name} /> },
  { name: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
  { name: "Workspaces", cell: ({ workspaces }) => workspaces?.join(", ") ?? "all workspaces" },
  { name: "Ends", cell: endOf },
  { name: "Used", kind: "extra", cell: ({ last_used_at }) => (last_used_at === null ? "never used" : exactMoment(last_used_at)) },
  { name: "Change", cell: (item) => isActive(item) && <Actions item={item} /> },
];

function isActive({ revoked_at, expires_at }: StoredKey): boolean {
  return revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now());
}

/** The end of a key's life, as a short text. */
function endOf(key: StoredKey): string {
  if (key.revoked_at !== null) return `revoked ${day(key.revoked_at)}`;
  if (key.expires_at === null) return "never expires";
  return `${isActive(key) ? "expires" : "expired"} ${exactMoment(key.expires_at)}`;
}

/** Ends an active key at once, or a day after another has taken its place. */
function Actions({ item: { id, name } }: { readonly item: StoredKey }) {
  const [sure, setSure] = useState(false);
  const rotate = useMutation("post", "/api/keys/{key_id}/rotate", {
    onSuccess: (made) => {
      madeKey.set(made);
      return listAgain();
    },
    onError: (error) => notifyFailure("The key could not be rotated", error),
  });
  const revoke = useMutation("delete", "/api/keys/{key_id}", {
    onSuccess: () => {
      notify(`The key ${name} is revoked`);
      return listAgain();
    },
    onError: (error) => notifyFailure("The key could not be revoked", error),
  });
  const params = { path: { key_id: id } };
  if (sure) {
    return (
      <p className="note-actions">
        Nobody can undo this.
        <button type="button" autoFocus onClick={() => setSure(false)}>
          Keep it
        </button>
        <button type="button" className="danger" disabled={revoke.isPending} onClick={() => revoke.mutate({ params })}>
          Revoke it for good
        </button>
      </p>
    );
  }
  return (
    <p className="note-actions">
      <button
        type="button"
        title="Make another secret; the old one stays valid for a day"
        disabled={rotate.isPending}
        onClick={() => rotate.mutate({ params, body: {} })}
      >
        Rotate
      </button>
      <button type="button" className="danger" onClick={() => setSure(true)}>
        Revoke …
      </button>
    </p>
  );
}
