import { type CueAction, useCueAction } from "../../../api/acts";
import type { Cue } from "../../../api/schema";
import { Icon } from "../../../parts/Icon";
import { Working } from "../../../parts/states";

export const ACTIONS = {
  accept: { label: "Accept", doing: "Accepting", icon: "review" },
  retire: { label: "Retire", doing: "Retiring", icon: "trash" },
  restore: { label: "Restore", doing: "Restoring", icon: "restore" },
} as const;

/** The changes that a cue's state allows. */
export function actionsOf(state: string): readonly CueAction[] {
  if (state === "active") return ["retire"];
  return state === "proposed" ? ["accept", "retire"] : ["restore"];
}

interface ButtonProps {
  readonly action: CueAction;
  readonly ids: readonly string[];
  readonly done?: () => void;
}

/** Changes the state of cues. */
export function ActionButton({ action, ids, done }: ButtonProps) {
  const change = useCueAction(action);
  const { label, doing, icon } = ACTIONS[action];
  return (
    <>
      <button
        type="button"
        className={action === "retire" ? "danger" : action === "accept" ? "primary" : undefined}
        disabled={change.isPending}
        onClick={() => change.mutate(ids, { onSuccess: () => done?.() })}
      >
        <Icon name={icon} />
        {label}
      </button>
      {change.isPending && <Working what={doing} />}
    </>
  );
}

interface Props {
  readonly cue: Cue;
  readonly edit: () => void;
}

export function Actions({ cue, edit }: Props) {
  return (
    <p className="note-actions">
      {actionsOf(cue.state).map((action) => (
        <ActionButton key={action} action={action} ids={[cue.id]} />
      ))}
      <button type="button" onClick={edit}>
        Edit
      </button>
    </p>
  );
}
