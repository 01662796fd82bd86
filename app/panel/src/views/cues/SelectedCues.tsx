import { useState } from "react";
import { useMergeCues } from "../../api/cues";
import type { Cue } from "../../api/types";
import { whole } from "../../parts/format";
import { changeAddress } from "../../state/address";
import { Working } from "../../parts/states";
import { ActionButton, actionsOf } from "./Actions";

interface Props {
  readonly cues: readonly Cue[];
  readonly done: () => void;
}

/** Changes all selected cues at once: what their states allow, and several become one. */
export function SelectedCues({ cues, done }: Props) {
  const actions = (["accept", "retire", "restore"] as const).map((action) => ({
    action,
    ids: cues.filter(({ state }) => actionsOf(state).includes(action)).map(({ id }) => id),
  }));
  return (
    <div className="selection-bar" role="group" aria-label="Change the selected cues">
      <span>{whole(cues.length)} selected</span>
      {actions.map(({ action, ids }) => ids.length > 0 && <ActionButton key={action} action={action} ids={ids} done={done} />)}
      <button type="button" className="quiet" onClick={done}>
        Clear
      </button>
      {cues.length > 1 && <Merge cues={cues} done={done} />}
    </div>
  );
}

/** One of the cues keeps its words, and gets the evidence and the counts of all. */
function Merge({ cues, done }: Props) {
  const [chosen, setChosen] = useState("");
  const merge = useMergeCues();
  const kept = cues.find(({ id }) => id === chosen) ?? cues[0];
  if (!kept) return null;
  const ids = cues.map(({ id }) => id).filter((id) => id !== kept.id);
  const merged = () => {
    done();
    changeAddress({ cue: kept.id }, { follow: true });
  };
  return (
    <div className="merge">
      <label>
        Merge into{" "}
        <select value={kept.id} onChange={(event) => setChosen(event.target.value)}>
          {cues.map(({ id, lesson }) => (
            <option key={id} value={id}>
              {lesson}
            </option>
          ))}
        </select>
      </label>
      <button type="button" disabled={merge.isPending} onClick={() => merge.mutate({ ids, into: kept.id }, { onSuccess: merged })}>
        Merge
      </button>
      {merge.isPending && <Working what="Merging" />}
    </div>
  );
}
