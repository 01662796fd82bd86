import { type FormEvent, useId, useState } from "react";
import { useChange, useTagging } from "../../api/acts";
import { useFacets } from "../../api/queries";
import { useRate } from "../../api/ratings";
import { Icon } from "../../parts/Icon";
import { Working } from "../../parts/states";

const TAG_LIMIT = 100;

interface Props {
  readonly chosen: readonly { readonly id: string; readonly tags: readonly string[] }[];
}

const RATINGS = [
  { rating: 1, way: "up", tone: "good" },
  { rating: -1, way: "down", tone: "bad" },
] as const;

/** Changes all selected memories at once; each change can be undone. */
export function SelectionBar({ chosen }: Props) {
  const ids = chosen.map(({ id }) => id);
  const rate = useRate();
  const tag = useTagging("tag");
  const untag = useTagging("untag");
  const remove = useChange("delete");
  const busy = rate.isPending || tag.isPending || untag.isPending || remove.isPending;
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
      <TagForm
        tags={[...new Set(chosen.flatMap(({ tags }) => tags))].sort()}
        busy={busy}
        tag={(name, done) => tag.mutate({ ids, tag: name }, { onSuccess: done })}
        untag={(name, done) => untag.mutate({ ids, tag: name }, { onSuccess: done })}
      />
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
      {rate.isPending && <progress value={rate.done} max={ids.length} aria-label="Ratings sent" />}
      {(tag.isPending || untag.isPending) && <Working what="Tagging" />}
      {remove.isPending && <Working what="Deleting" />}
    </div>
  );
}

type Tagging = (name: string, done: () => void) => void;

interface TagFormProps {
  readonly tags: readonly string[];
  readonly busy: boolean;
  readonly tag: Tagging;
  readonly untag: Tagging;
}

function TagForm({ tags, busy, tag, untag }: TagFormProps) {
  const [draft, setDraft] = useState("");
  const known = useFacets().data?.tags ?? [];
  const list = useId();
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
        list={list}
        value={draft}
        maxLength={TAG_LIMIT}
        onChange={(event) => setDraft(event.target.value)}
      />
      <datalist id={list}>
        {[...new Set([...tags, ...known.map(({ value }) => value)])].map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      <button type="submit" disabled={busy || name === ""}>
        Tag
      </button>
      <button
        type="button"
        disabled={busy || !tags.includes(name)}
        title="Remove this tag from the selected memories"
        onClick={() => untag(name, () => setDraft(""))}
      >
        Untag
      </button>
    </form>
  );
}
