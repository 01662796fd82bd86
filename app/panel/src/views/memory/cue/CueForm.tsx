import { useEditCue } from "../../../api/acts";
import type { Cue } from "../../../api/schema";
import { AreaField } from "../../../parts/Field";
import { PaneForm } from "../../../parts/pane";
import { useDraft } from "../../../state/draft";

interface Props {
  readonly cue: Cue;
  readonly onClose: () => void;
}

/** What a cue says, and when. */
export function CueForm({ cue, onClose }: Props) {
  const [draft, set, forget] = useDraft(`cue ${cue.id}`, { trigger: cue.trigger, lesson: cue.lesson });
  const save = useEditCue(cue);
  const written = { trigger: draft.trigger.trim(), lesson: draft.lesson.trim() };
  const close = () => {
    forget();
    onClose();
  };
  return (
    <PaneForm
      title="Edit the cue"
      ready={written.trigger !== "" && written.lesson !== ""}
      saving={save.isPending}
      submit={() => save.mutate(written, { onSuccess: close })}
      onClose={close}
    >
      <AreaField label="When (trigger)" value={draft.trigger} set={(trigger) => set({ ...draft, trigger })} required />
      <AreaField label="Lesson" value={draft.lesson} set={(lesson) => set({ ...draft, lesson })} required />
    </PaneForm>
  );
}
