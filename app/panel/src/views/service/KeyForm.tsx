import { useService } from "../../api/client";
import { isFirst, useMakeKey } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { dayAfter } from "../../parts/days";
import { AreaField, ChoiceField, TextField } from "../../parts/Field";
import { partsOf } from "../../parts/format";
import { toggled } from "../../parts/list";
import { DetailPane, PaneForm } from "../../parts/pane";
import { changeAddress } from "../../state/address";
import { useDraft } from "../../state/draft";

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

interface Props {
  readonly keys: readonly StoredKey[];
  readonly onClose: () => void;
}

/** A new key in the pane beside the list. */
export function NewKey({ keys, onClose }: Props) {
  return (
    <DetailPane label="New API key" onClose={onClose}>
      <KeyForm first={isFirst(keys)} onClose={onClose} />
    </DetailPane>
  );
}

interface FormProps {
  /** The first key closes the service, this page included, so it must be one that manages keys. */
  readonly first: boolean;
  readonly onClose: () => void;
}

function KeyForm({ first, onClose }: FormProps) {
  const { workspace } = useService();
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
  const make = useMakeKey(first);
  const everywhere = draft.serves === "all";
  const names = partsOf(draft.served, "\n");
  const submit = () =>
    make.mutate(
      {
        body: {
          name: draft.name.trim(),
          scopes: draft.scopes,
          workspaces: everywhere ? null : names,
          expires_at: draft.lastDay === "" ? null : dayAfter(draft.lastDay),
        },
      },
      {
        onSuccess: ({ key }) => {
          forget();
          changeAddress({ key: key.id }, { replace: true, follow: true });
        },
      },
    );
  const ready = draft.name.trim() !== "" && draft.scopes.length > 0 && (everywhere || names.length > 0);
  return (
    <PaneForm title="New API key" action="Make the key" ready={ready} saving={make.isPending} submit={submit} onClose={close}>
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
      {!everywhere && (
        <AreaField label="Names of workspaces, one on each line" required value={draft.served} set={(served) => set({ served })} />
      )}
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
