import { type FormEvent, useState } from "react";
import { useChange, useTagging } from "../../api/acts";
import { useRate } from "../../api/ratings";
import { Icon } from "../../parts/Icon";
import { Working } from "../../parts/states";

const TAG_LIMIT = 100;

interface Props {
  readonly chosen: readonly { readonly id: string }[];
}

const RATINGS = [
  { rating: 1, way: "up", tone: "good" },
  { rating: -1, way: "down", tone: "bad" },
] as const;

/** Changes all selected memories at once; each change can be undone. */
export function SelectionBar({ chosen }: Props) {
  const ids = chosen.map(({ id }) => id);
  const rate = useRate();
  const tag = useTagging();
  const remove = useChange("delete");
  const working = rate.isPending ? "Rating" : tag.isPending ? "Tagging" : remove.isPending ? "Deleting" : "";
  const busy = working !== "";
  return (
    <div className="selection-bar" role="group" aria-label="Change the selected memories">
      {RATINGS.map(({ rating, way, tone }) => (
        <button
          key={way}
          type="button"
          className={`thumb ${tone}`}
          title={`Rate all selected memories ${way}`}
          disabled={busy}
          onClick={() => rate.mutate({ ids, rating, comment: "" })}
        >
          <Icon name={way} label={`Rate all selected memories ${way}`} />
        </button>
      ))}
      <TagForm busy={busy} tag={(name, done) => tag.mutate({ ids, tag: name }, { onSuccess: done })} />
      <button
        type="button"
        className="danger"
        disabled={busy}
        title="Delete the selected memories; you can restore them"
        onClick={() => remove.mutate(ids)}
      >
        <Icon name="trash" />
        Delete
      </button>
      {busy && <Working what={working} />}
    </div>
  );
}

interface TagFormProps {
  readonly busy: boolean;
  readonly tag: (name: string, done: () => void) => void;
}

function TagForm({ busy, tag }: TagFormProps) {
  const [draft, setDraft] = useState("");
  const name = draft.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name !== "") tag(name, () => setDraft(""));
  };
  return (
    <form onSubmit={submit}>
      <input
        aria-label="Tag for the selected memories"
        placeholder="Tag"
        value={draft}
        maxLength={TAG_LIMIT}
        onChange={(event) => setDraft(event.target.value)}
      />
      <button type="submit" disabled={busy || name === ""}>
        Tag
      </button>
    </form>
  );
}
