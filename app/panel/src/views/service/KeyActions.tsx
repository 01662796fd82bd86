import { useRef, useState } from "react";
import { useRevokeKey, useRotateKey } from "../../api/keys";
import type { StoredKey } from "../../api/schema";
import { Choice } from "../../parts/Field";
import { Icon } from "../../parts/Icon";
import { OneLine } from "../../parts/OneLine";
import { Working } from "../../parts/states";
import { changeAddress } from "../../state/address";

const HOUR = 3600;
const OVERLAPS: readonly (readonly [number, string])[] = [
  [0, "not at all"],
  [HOUR, "for 1 hour"],
  [24 * HOUR, "for 1 day"],
  [7 * 24 * HOUR, "for 7 days"],
  [30 * 24 * HOUR, "for 30 days"],
];

/** Ends an active key at once, or once another has taken its place. */
export function KeyActions({ item }: { readonly item: StoredKey }) {
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
