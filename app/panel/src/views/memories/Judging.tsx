import { useState } from "react";
import { useChange } from "../../api/changes";
import { useRatings } from "../../api/memories";
import { useRate, useUndoRating } from "../../api/ratings";
import type { Memory, Rating } from "../../api/types";
import { exactMoment } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Quality } from "../../parts/marks";
import { Working } from "../../parts/states";
import { useShortcuts } from "../../state/shortcuts";

const COMMENT_LIMIT = 10_000;

/** Thumbs, a comment where there is one, and what others said. */
export function Judging({ memory }: { readonly memory: Memory }) {
  const [comment, setComment] = useState("");
  const rate = useRate();
  const remove = useChange("delete");
  const judge = (rating: 1 | -1) => {
    const said = comment.trim();
    setComment("");
    // Cleared at once, so that it is not sent twice; one that was not taken is given back.
    rate.mutateAsync({ id: memory.id, rating, comment: said }).catch(() => setComment((now) => now || said));
  };
  useShortcuts({ u: () => judge(1), d: () => judge(-1) });
  return (
    <section className="judging" aria-label="Rating">
      <div className="judging-line">
        <button type="button" className="thumb good" onClick={() => judge(1)} title="Rate up (u)">
          <Icon name="up" label="Rate up" />
        </button>
        <Quality value={memory.quality} always />
        <button type="button" className="thumb bad" onClick={() => judge(-1)} title="Rate down (d)">
          <Icon name="down" label="Rate down" />
        </button>
        <input
          aria-label="Comment on the rating"
          placeholder="Comment (optional), then rate"
          value={comment}
          maxLength={COMMENT_LIMIT}
          onChange={(event) => setComment(event.target.value)}
        />
        {!memory.retired_as && (
          <button
            type="button"
            className="icon"
            title="Delete this memory; you can restore it"
            disabled={remove.isPending}
            onClick={() => remove.mutate([memory.id])}
          >
            <Icon name="trash" label="Delete" />
          </button>
        )}
      </div>
      {remove.isPending && <Working what="Deleting" />}
      <History id={memory.id} />
    </section>
  );
}

function History({ id }: { readonly id: string }) {
  const ratings = useRatings(id);
  if (ratings.isError) return <p className="problem">The ratings cannot be shown: {ratings.error.message}</p>;
  if (!ratings.data || ratings.data.length === 0) return null;
  return (
    <ol className="ratings" aria-label="Ratings">
      {[...ratings.data].reverse().map((rating) => (
        <RatingLine key={rating.feedback_id} rating={rating} />
      ))}
    </ol>
  );
}

function RatingLine({ rating }: { readonly rating: Rating }) {
  const undo = useUndoRating();
  const up = rating.rating > 0;
  return (
    <li className={rating.undone_at ? "undone" : ""}>
      <span className={up ? "good" : "bad"}>
        <Icon name={up ? "up" : "down"} label={up ? "Up" : "Down"} />
      </span>
      <span className="said">{rating.comment || <span className="muted">No comment</span>}</span>
      <time dateTime={rating.created_at}>{exactMoment(rating.created_at)}</time>
      {rating.undone_at ? (
        <span className="muted">
          Removed
        </span>
      ) : (
        <button
          type="button"
          className="quiet"
          disabled={undo.isPending}
          onClick={() => undo.mutate(rating.feedback_id)}
        >
          Undo
        </button>
      )}
    </li>
  );
}
