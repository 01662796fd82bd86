import { type CueAction, useCueAction } from "../../../api/acts";
import type { Cue } from "../../../api/schema";
import { Icon } from "../../../parts/Icon";
import { Working } from "../../../parts/states";

const ACTIONS = {
  accept: { label: "Accept", doing: "Accepting", icon: "review", tone: "primary" },
  retire: { label: "Retire", doing: "Retiring", icon: "trash", tone: "danger" },
  restore: { label: "Restore", doing: "Restoring", icon: "restore", tone: undefined },
} as const;

/** The changes that a cue's state allows. */
function actionsOf(state: string): readonly CueAction[] {
  if (state === "active") return ["retire"];
  return state === "proposed" ? ["accept", "retire"] : ["restore"];
}

function Action({ action, cue }: { readonly action: CueAction; readonly cue: string }) {
  const change = useCueAction(action);
  const { label, doing, icon, tone } = ACTIONS[action];
  return (
    <>
      <button type="button" className={tone} disabled={change.isPending} onClick={() => change.mutate(cue)}>
        <Icon name={icon} />
        {label}
      </button>
      {change.isPending && <Working what={doing} />}
    </>
  );
}

export function Actions({ cue, edit }: { readonly cue: Cue; readonly edit: () => void }) {
  return (
    <p className="note-actions">
      {actionsOf(cue.state).map((action) => (
        <Action key={action} action={action} cue={cue.id} />
      ))}
      <button type="button" onClick={edit}>
        Edit
      </button>
    </p>
  );
}
