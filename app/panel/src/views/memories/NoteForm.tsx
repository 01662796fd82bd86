import { type FormEvent, type KeyboardEvent, useId, useState } from "react";
import { useSaveNote } from "../../api/notes";
import type { Memory } from "../../api/types";
import { DetailPane } from "../../parts/DetailPane";
import { PaneTitle } from "../../parts/PaneTitle";
import { Working } from "../../parts/states";
import { changeAddress } from "../../state/address";

const TITLE_LIMIT = 500;
const TAG_SEPARATOR = ",";

interface Props {
  /** The note that is edited; without it, a new one is written. */
  readonly note?: Memory;
  readonly onClose: () => void;
}

/** The fields of a note. An edited note becomes a new version, and the old one is superseded. */
export function NoteForm({ note, onClose }: Props) {
  const [title, setTitle] = useState(note?.title ?? "");
  const [body, setBody] = useState(note?.body ?? "");
  const [tags, setTags] = useState(note?.tags.join(`${TAG_SEPARATOR} `) ?? "");
  const save = useSaveNote(note?.id);
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const written = { title: title.trim(), body: body.trim(), tags: tagsOf(tags) };
    save.mutate(written, {
      onSuccess: ({ id: saved }) => {
        changeAddress({ memory: saved, note: null }, { replace: true, follow: true });
        onClose();
      },
     });
  };
  const keyed = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <form className="note-form" onSubmit={submit} onKeyDown={keyed}>
      <PaneTitle>{note ? "Edit the note" : "New note"}</PaneTitle>
      <div className="field">
        <label htmlFor={`${id}-title`}>Title</label>
        <input id={`${id}-title`} dir="auto" maxLength={TITLE_LIMIT} value={title} onChange={(event) => setTitle(event.target.value)} />
      </div>
      <div className="field">
        <label htmlFor={`${id}-body`}>Text (Markdown)</label>
        <textarea id={`${id}-body`} dir="auto" rows={12} required value={body} onChange={(event) => setBody(event.target.value)} />
      </div>
      <div className="field">
        <label htmlFor={`${id}-tags`}>Tags, separated by commas</label>
        <input id={`${id}-tags`} value={tags} onChange={(event) => setTags(event.target.value)} />
      </div>
      <p className="note-actions">
        <button type="submit" className="primary" disabled={save.isPending || body.trim() === ""}>
          {note ? "Save as a new version" : "Save"}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {save.isPending && <Working what="Saving" />}
      </p>
    </form>
  );
}

function tagsOf(text: string): readonly string[] {
  return [...new Set(text.split(TAG_SEPARATOR).map((tag) => tag.trim()).filter(Boolean))];
}

/** A new note in the pane beside the list. */
export function NewNote({ onClose }: { readonly onClose: () => void }) {
  return (
    <DetailPane label="New note" onClose={onClose}>
      <NoteForm onClose={onClose} />
    </DetailPane>
  );
}
