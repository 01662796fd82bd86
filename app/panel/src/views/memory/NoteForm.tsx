import { useSaveNote } from "../../api/acts";
import { useService } from "../../api/client";
import type { MemoryView } from "../../api/schema";
import { AreaField, TextField } from "../../parts/Field";
import { partsOf } from "../../parts/format";
import { DetailPane, PaneForm } from "../../parts/pane";
import { changeAddress } from "../../state/address";
import { useDraft } from "../../state/draft";

const TITLE_LIMIT = 500;
const TAG_SEPARATOR = ",";

interface Props {
  /** The note that is edited; without it, a new one is written. */
  readonly note?: MemoryView;
  readonly onClose: () => void;
}

/** The fields of a note. An edited note becomes a new version, and the old one is superseded. */
export function NoteForm({ note, onClose }: Props) {
  const { workspace } = useService();
  const [draft, set, forget] = useDraft(`note ${note?.id ?? workspace}`, {
    title: note?.title ?? "",
    body: note?.body ?? "",
    tags: note?.tags.join(`${TAG_SEPARATOR} `) ?? "",
  });
  const save = useSaveNote(note?.id);
  const close = () => {
    forget();
    onClose();
  };
  const submit = () => {
    const written = { title: draft.title.trim(), body: draft.body.trim(), tags: [...new Set(partsOf(draft.tags, TAG_SEPARATOR))] };
    save.mutate(written, {
      onSuccess: (saved) => {
        changeAddress({ memory: saved, note: null }, { replace: true, follow: true });
        close();
      },
    });
  };
  return (
    <PaneForm
      title={note ? "Edit the note" : "New note"}
      action={note ? "Save as a new version" : "Save"}
      ready={draft.body.trim() !== ""}
      saving={save.isPending}
      submit={submit}
      onClose={close}
    >
      <TextField label="Title" autoFocus maxLength={TITLE_LIMIT} value={draft.title} set={(title) => set({ ...draft, title })} />
      <AreaField
        label="Text (Markdown)"
        rows={12}
        required
        maxLength={undefined}
        value={draft.body}
        set={(body) => set({ ...draft, body })}
      />
      <TextField label="Tags, separated by commas" maxLength={undefined} value={draft.tags} set={(tags) => set({ ...draft, tags })} />
    </PaneForm>
  );
}

/** A new note in the pane beside the list. */
export function NewNote({ onClose }: { readonly onClose: () => void }) {
  return (
    <DetailPane label="New note" onClose={onClose}>
      <NoteForm onClose={onClose} />
    </DetailPane>
  );
}
