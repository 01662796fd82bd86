import { useState } from "react";
import { useService } from "../../api/client";
import { isFirst, useMakeKey } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { toggled } from "../../parts/choice";
import { DetailPane } from "../../parts/DetailPane";
import { dayAfter } from "../../parts/days";
import { Field } from "../../parts/Field";
import { PaneForm } from "../../parts/PaneForm";
import { changeAddress } from "../../state/address";

const NAME_LIMIT = 100;
/** Characters. */
const SCOPES: readonly (readonly [string, string])[] = [
  ["read", "search, ask and list"],
  ["write", "store, change and delete"],
  ["rate", "rate memories and note outcomes"],
  ["admin", "all of it, and manage keys"],
];

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
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set([first ? "admin" : "read"]));
  const [everywhere, setEverywhere] = useState(first);
  const [served, setServed] = useState(useService().workspace);
  const [lastDay, setLastDay] = useState("");
  const make = useMakeKey(first);
  const names = served
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const submit = () =>
    make.mutate(
      {
        body: {
          name: name.trim(),
          scopes: [...chosen],
          workspaces: everywhere ? null : names,
          expires_at: lastDay === "" ? null : dayAfter(lastDay),
        },
      },
      { onSuccess: ({ key }) => changeAddress({ key: key.id }, { replace: true, follow: true }) },
    );
  const ready = name.trim() !== "" && chosen.size > 0 && (everywhere || names.length > 0);
  return (
    <PaneForm title="New API key" action="Make the key" ready={ready} saving={make.isPending} submit={submit} onClose={onClose}>
      {first && (
        <p className="retired">
          From this key on, each request needs a key. This page goes on with it; agents on this machine need one of their own. So the first
          key has the scope admin and serves all workspaces.
        </p>
      )}
      <Field label="Name, which tells it from other keys">
        {(id) => (
          <input id={id} dir="auto" required maxLength={NAME_LIMIT} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <fieldset className="field">
        <legend>Scopes</legend>
        {SCOPES.map(([scope, may]) => (
          <label key={scope} className="key-scope">
            <input type="checkbox" disabled={first} checked={chosen.has(scope)} onChange={() => setChosen(toggled(chosen, scope))} />
            <span>
              {scope} <span className="muted">{may}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <Field label="Workspaces">
        {(id) => (
          <select
            id={id}
            disabled={first}
            value={everywhere ? "all" : "some"}
            onChange={(event) => setEverywhere(event.target.value === "all")}
          >
            <option value="some">only these</option>
            <option value="all">all workspaces, also future ones</option>
          </select>
        )}
      </Field>
      {!everywhere && (
        <Field label="Names of workspaces, one on each line">
          {(id) => <textarea id={id} rows={2} required value={served} onChange={(event) => setServed(event.target.value)} />}
        </Field>
      )}
      <Field label="Last day (UTC); without one, it never expires">
        {(id) => (
          <input
            id={id}
            type="date"
            min={new Date().toISOString().slice(0, 10)}
            value={lastDay}
            onChange={(event) => setLastDay(event.target.value)}
          />
        )}
      </Field>
    </PaneForm>
  );
}
