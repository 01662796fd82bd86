import { useState } from "react";
import { useEditCue } from "../../../api/acts";
import type { Cue, CueEdit } from "../../../api/schema";
import { Field } from "../../../parts/Field";
import { PaneForm } from "../../../parts/PaneForm";
import { heading, KINDS, kindName } from "./asked";

const TEXT_LIMIT = 2_000;
/** Characters. */

/** The fields beyond trigger and lesson of each kind; those with several values have one on each line. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  preference: ["context", "preferred_over"],
  precedent: ["situation", "action", "outcome"],
  procedure: ["goal", "steps"],
  decision: ["subject", "choice", "alternatives", "reasoning"],
  discovery: ["domain", "implications"],
  negative_result: ["attempted", "failure_reason", "led_to"],
};
const LISTS: ReadonlySet<string> = new Set(["steps", "alternatives"]);

interface Props {
  readonly cue: Cue;
  readonly onClose: () => void;
}

interface Draft {
  readonly kind: string;
  readonly trigger: string;
  readonly lesson: string;
  readonly confidence: number;
  readonly consequence: number;
  readonly scope: string;
  readonly action_types: string;
  readonly files: string;
  readonly details: Readonly<Record<string, string>>;
}

/** The fields of a cue, except for its evidence and its counts. */
export function CueForm({ cue, onClose }: Props) {
  const [draft, setDraft] = useState(() => draftOf(cue));
  const save = useEditCue(cue);
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const submit = () => {
    const changes = changesOf(draft, cue);
    if (Object.keys(changes).length === 0) onClose();
    else save.mutate(changes, { onSuccess: onClose });
  };
  return (
    <PaneForm
      title="Edit the cue"
      ready={draft.trigger.trim() !== "" && draft.lesson.trim() !== ""}
      saving={save.isPending}
      submit={submit}
      onClose={onClose}
    >
      <Area label="When (trigger)" value={draft.trigger} set={(trigger) => set({ trigger })} required />
      <Area label="Lesson" value={draft.lesson} set={(lesson) => set({ lesson })} required />
      <div className="cue-fields">
        <Field label="Kind">
          {(id) => (
            <select id={id} value={draft.kind} onChange={(event) => set({ kind: event.target.value })}>
              {KINDS.map((kind) => (
                <option key={kind} value={kind}>
                  {kindName(kind)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Scope">
          {(id) => (
            <select id={id} value={draft.scope} onChange={(event) => set({ scope: event.target.value })}>
              <option value="project">this project</option>
              <option value="user">this user's projects</option>
            </select>
          )}
        </Field>
        <Share label="Confidence, 0 to 1" value={draft.confidence} set={(confidence) => set({ confidence })} />
        <Share label="Consequence, 0 to 1" value={draft.consequence} set={(consequence) => set({ consequence })} />
      </div>
      {FIELDS[draft.kind]?.map((name) => (
        <Area
          key={name}
          label={LISTS.has(name) ? `${heading(name)}, one on each line` : heading(name)}
          value={draft.details[name] ?? ""}
          set={(value) => set({ details: { ...draft.details, [name]: value } })}
        />
      ))}
      <Area label="Action types, one on each line" value={draft.action_types} set={(action_types) => set({ action_types })} />
      <Area label="Files, one on each line" value={draft.files} set={(files) => set({ files })} />
    </PaneForm>
  );
}

function draftOf(cue: Cue): Draft {
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
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
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

interface AreaProps {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
  readonly required?: boolean;
}

function Area({ label, value, set, required = false }: AreaProps) {
  return (
    <Field label={label}>
      {(id) => (
        <textarea
          id={id}
          dir="auto"
          rows={2}
          required={required}
          maxLength={TEXT_LIMIT}
          value={value}
          onChange={(event) => set(event.target.value)}
        />
      )}
    </Field>
  );
}

interface ShareProps {
  readonly label: string;
  readonly value: number;
  readonly set: (value: number) => void;
}

function Share({ label, value, set }: ShareProps) {
  return (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="number"
          min={0}
          max={1}
          step="any"
          required
          value={Number.isNaN(value) ? "" : value}
          onChange={(event) => set(event.target.valueAsNumber)}
        />
      )}
    </Field>
  );
}
