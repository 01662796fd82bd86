import { useEditCue } from "../../../api/acts";
import type { Cue, CueEdit } from "../../../api/schema";
import { AreaField, ChoiceField, NumberField } from "../../../parts/Field";
import { partsOf } from "../../../parts/format";
import { PaneForm } from "../../../parts/pane";
import { useDraft } from "../../../state/draft";
import { heading, KINDS, kindName, SCOPES } from "./words";

/** The fields beyond trigger and lesson of each kind; those with several values have one on each line. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  preference: ["context", "preferred_over"],
  precedent: ["situation", "action", "outcome"],
  procedure: ["goal", "steps"],
  decision: ["subject", "choice", "alternatives", "reasoning"],
  discovery: ["domain", "implications"],
  negative_result: ["attempted", "failure_reason", "led_to"],
};
const SHARE = { min: 0, max: 1, step: "any" };
const LISTS: ReadonlySet<string> = new Set(["steps", "alternatives"]);

interface Props {
  readonly cue: Cue;
  readonly onClose: () => void;
}

type Draft = ReturnType<typeof draftOf>;

/** The fields of a cue, except for its evidence and its counts. */
export function CueForm({ cue, onClose }: Props) {
  const [draft, setDraft, forget] = useDraft(`cue ${cue.id}`, draftOf(cue));
  const save = useEditCue(cue);
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const close = () => {
    forget();
    onClose();
  };
  const submit = () => {
    const changes = changesOf(draft, cue);
    if (Object.keys(changes).length === 0) close();
    else save.mutate(changes, { onSuccess: close });
  };
  return (
    <PaneForm
      title="Edit the cue"
      ready={draft.trigger.trim() !== "" && draft.lesson.trim() !== ""}
      saving={save.isPending}
      submit={submit}
      onClose={close}
    >
      <AreaField label="When (trigger)" value={draft.trigger} set={(trigger) => set({ trigger })} required />
      <AreaField label="Lesson" value={draft.lesson} set={(lesson) => set({ lesson })} required />
      <div className="cue-fields">
        <ChoiceField
          label="Kind"
          value={draft.kind}
          set={(kind) => set({ kind })}
          options={KINDS.map((kind) => [kind, kindName(kind)] as const)}
        />
        <ChoiceField label="Scope" value={draft.scope} set={(scope) => set({ scope })} options={Object.entries(SCOPES)} />
        <NumberField {...SHARE} label="Confidence, 0 to 1" value={draft.confidence} set={(confidence) => set({ confidence })} />
        <NumberField {...SHARE} label="Consequence, 0 to 1" value={draft.consequence} set={(consequence) => set({ consequence })} />
      </div>
      {FIELDS[draft.kind]?.map((name) => (
        <AreaField
          key={name}
          label={LISTS.has(name) ? `${heading(name)}, one on each line` : heading(name)}
          value={draft.details[name] ?? ""}
          set={(value) => set({ details: { ...draft.details, [name]: value } })}
        />
      ))}
      <AreaField label="Action types, one on each line" value={draft.action_types} set={(action_types) => set({ action_types })} />
      <AreaField label="Files, one on each line" value={draft.files} set={(files) => set({ files })} />
    </PaneForm>
  );
}

function draftOf(cue: Cue) {
  const details = Object.entries(cue.details).map(([name, value]) => [name, Array.isArray(value) ? value.join("\n") : String(value)]);
  return {
    kind: cue.kind,
    trigger: cue.trigger,
    lesson: cue.lesson,
    confidence: cue.confidence,
    consequence: cue.consequence,
    scope: cue.scope,
    action_types: cue.action_types.join("\n"),
    files: cue.files.join("\n"),
    details: Object.fromEntries(details),
  };
}

function linesOf(text: string): readonly string[] {
  return partsOf(text, "\n");
}

/** The values that the form changes. */
function changesOf(draft: Draft, cue: Cue): CueEdit {
  const { details, ...rest } = draft;
  const fields = (FIELDS[draft.kind] ?? []).map(
    (name) => [name, LISTS.has(name) ? linesOf(details[name] ?? "") : (details[name] ?? "").trim()] as const,
  );
  const written = {
    ...rest,
    trigger: draft.trigger.trim(),
    lesson: draft.lesson.trim(),
    action_types: linesOf(draft.action_types),
    files: linesOf(draft.files),
    details: Object.fromEntries(fields.filter(([, value]) => value.length > 0)),
  };
  const changed = Object.entries(written).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(cue[name as keyof Cue]));
  return Object.fromEntries(changed);
}
