import { useSaveNote } from "../../api/acts";
import type { MemoryView } from "../../api/schema";
import { DetailPane } from "../../parts/DetailPane";
import { Field } from "../../parts/Field";
import { PaneForm } from "../../parts/PaneForm";
import { changeAddress } from "../../state/address";
import { forgetDrafts, useDraft } from "../../state/draft";

const TITLE_LIMIT = 500;
const TAG_SEPARATOR = ",";

interface Props {
  /** The note that is edited; without it, a new one is written. */
  readonly note?: MemoryView;
  readonly onClose: () => void;
}

/** The fields of a note. An edited note becomes a new version, and the old one is superseded. */
export function NoteForm({ note, onClose }: Props) {
  const own = `note ${note?.id ?? "new"}`;
  const [title, setTitle] = useDraft(`${own} title`, note?.title ?? "");
  const [body, setBody] = useDraft(`${own} body`, note?.body ?? "");
  const [tags, setTags] = useDraft(`${own} tags`, note?.tags.join(`${TAG_SEPARATOR} `) ?? "");
  const save = useSaveNote(note?.id);
  const submit = () => {
    const written = { title: title.trim(), body: body.trim(), tags: tagsOf(tags) };
    save.mutate(written, {
      onSuccess: (saved) => {
        forgetDrafts(own);
        changeAddress({ memory: saved, note: null }, { replace: true, follow: true });
        onClose();
      },
    });
  };
  return (
    <PaneForm
      title={note ? "Edit the note" : "New note"}
      action={note ? "Save as a new version" : "Save"}
      ready={body.trim() !== ""}
      saving={save.isPending}
      submit={submit}
      onClose={onClose}
    >
      <Field label="Title">
        {(id) => (
          <input id={id} dir="auto" autoFocus maxLength={TITLE_LIMIT} value={title} onChange={(event) => setTitle(event.target.value)} />
        )}
      </Field>
      <Field label="Text (Markdown)">
        {(id) => <textarea id={id} dir="auto" rows={12} required value={body} onChange={(event) => setBody(event.target.value)} />}
      </Field>
      <Field label="Tags, separated by commas">
        {(id) => <input id={id} value={tags} onChange={(event) => setTags(event.target.value)} />}
      </Field>
    </PaneForm>
  );
}

function tagsOf(text: string): readonly string[] {
  return [
    ...new Set(
      text
        .split(TAG_SEPARATOR)
        .map((tag) => tag.trim())
        .filter(Boolean),
    ),
  ];
}

/** A new note in the pane beside the list. */
export function NewNote({ onClose }: { readonly onClose: () => void }) {
  return (
    <DetailPane label="New note" onClose={onClose}>
      <NoteForm onClose={onClose} />
    </DetailPane>
  );
}
