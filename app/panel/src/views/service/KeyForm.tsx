import { everywhere, useService } from "../../api/client";
import type { StoredKey } from "../../api/schema";
import { dayAfter } from "../../parts/days";
import { AreaField, ChoiceField, TextField } from "../../parts/Field";
import { partsOf } from "../../parts/format";
import { toggled } from "../../parts/list";
import { PaneForm } from "../../parts/pane";
import { useDraft } from "../../state/draft";
import { notifyFailure } from "../../state/notices";
import { apiKey, keepKey, madeKey } from "../../state/session";
import { listAgain } from "./Keys";

const NAME_LIMIT = 100;
/** Characters. */
const SCOPES: readonly (readonly [string, string])[] = [
  ["read", "search, ask and list"],
  ["write", "store, change and delete"],
  ["rate", "rate memories and note outcomes"],
  ["admin", "all of it, and manage keys"],
];

const SERVES = [
  ["some", "only these"],
  ["all", "all workspaces, also future ones"],
] as const;
const STORED = "priors_";

/** True if no request needs a key yet. A tab may still have the key of a store whose keys are all revoked. */
function isFirst(keys: readonly StoredKey[]): boolean {
  return apiKey() === null || (apiKey()?.startsWith(STORED) === true && keys.every(({ revoked_at }) => revoked_at !== null));
}

interface Props {
  readonly keys: readonly StoredKey[];
  readonly onClose: () => void;
}

/** A new key. The first one closes the service, this page included, so it must be one that manages keys. */
export function KeyForm({ keys, onClose }: Props) {
  const { workspace } = useService();
  const first = isFirst(keys);
  const [draft, setDraft, forget] = useDraft(first ? "first key" : `key ${workspace}`, {
    name: "",
    scopes: [first ? "admin" : "read"],
    serves: first ? "all" : "some",
    served: workspace,
    lastDay: "",
  });
  const set = (change: Partial<typeof draft>) => setDraft({ ...draft, ...change });
  const close = () => {
    forget();
    onClose();
  };
  const make = everywhere.useMutation("post", "/api/keys", {
    onSuccess: (made) => {
      // From the first one on each request needs a key, so this tab goes on with it.
      if (first) keepKey(made.secret);
      madeKey.set(made);
      close();
      return listAgain();
    },
    onError: (error) => notifyFailure("The key could not be made", error),
  });
  const all = draft.serves === "all";
  const names = partsOf(draft.served, "\n");
  const expires_at = draft.lastDay === "" ? null : dayAfter(draft.lastDay);
  const body = { name: draft.name.trim(), scopes: draft.scopes, workspaces: all ? null : names, expires_at };
  const ready = body.name !== "" && draft.scopes.length > 0 && (all || names.length > 0);
  return (
    <PaneForm
      title="New API key"
      action="Make the key"
      ready={ready}
      saving={make.isPending}
      submit={() => make.mutate({ body })}
      onClose={close}
    >
      {first && (
        <p className="retired">
          From this key on, each request needs a key. This page goes on with it; agents on this machine need one of their own. So the first
          key has the scope admin and serves all workspaces.
        </p>
      )}
      <TextField
        label="Name, which tells it from other keys"
        required
        maxLength={NAME_LIMIT}
        value={draft.name}
        set={(name) => set({ name })}
      />
      <fieldset className="field">
        <legend>Scopes</legend>
        {SCOPES.map(([scope, may]) => (
          <label key={scope} className="key-scope">
            <input
              type="checkbox"
              disabled={first}
              checked={draft.scopes.includes(scope)}
              onChange={() => set({ scopes: [...toggled(new Set(draft.scopes), scope)] })}
            />
            <span>
              {scope} <span className="muted">{may}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <ChoiceField label="Workspaces" disabled={first} value={draft.serves} set={(serves) => set({ serves })} options={SERVES} />
      {!all && <AreaField label="Names of workspaces, one on each line" required value={draft.served} set={(served) => set({ served })} />}
      <TextField
        label="Last day (UTC); without one, it never expires"
        type="date"
        min={new Date().toISOString().slice(0, 10)}
        value={draft.lastDay}
        set={(lastDay) => set({ lastDay })}
      />
    </PaneForm>
  );
}
