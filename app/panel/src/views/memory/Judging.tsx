import { type FormEvent, useRef } from "react";
import { useChange } from "../../api/acts";
import { useRate, useRatings, useRatingWatch, useUndoRating } from "../../api/ratings";
import type { MemoryView, Rating } from "../../api/schema";
import { exactMoment } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Quality } from "../../parts/marks";
import { Unshown, Working } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { useDraft } from "../../state/draft";
import { useReviewer } from "../../state/reviewer";
import { useShortcuts } from "../../state/shortcuts";

const COMMENT_LIMIT = 10_000;

interface Props {
  readonly memory: MemoryView;
  /** The place has its own button that deletes. */
  readonly decided: boolean;
}

/** The reader's own rating of a memory, its comment, and the ratings of others. */
export function Judging({ memory, decided }: Props) {
  const [comment, setComment] = useDraft(`comment ${memory.id}`, "");
  const up = useRef<HTMLButtonElement>(null);
  const own = useOwn(memory.id);
  useRatingWatch(memory.id);
  const rate = useRate();
  const remove = useChange("delete");
  const judge = (rating: 1 | -1) => {
    const said = comment.trim();
    if (own?.rating === rating && said === "") return;
    setComment("");
    // Cleared at once, so that it is not sent twice; one that was not taken is given back.
    rate
      .mutateAsync({ ids: [memory.id], rating, comment: said || (own?.rating === rating ? own.comment : "") })
      .catch(() => setComment(said));
  };
  /** Enter sends the comment with the rating that the reader has given, or asks for one. */
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (comment.trim() === "") return;
    if (own) judge(own.rating > 0 ? 1 : -1);
    else up.current?.focus();
  };
  useShortcuts({ u: () => judge(1), d: () => judge(-1) });
  return (
    <section className="judging" aria-label="Rating">
      <form className="judging-line" onSubmit={submit}>
        <button ref={up} type="button" className="thumb good" aria-pressed={own?.rating === 1} onClick={() => judge(1)} title="Rate up (u)">
          <Icon name="up" label="Rate up" />
        </button>
        <Quality value={memory.quality} always />
        <button type="button" className="thumb bad" aria-pressed={own?.rating === -1} onClick={() => judge(-1)} title="Rate down (d)">
          <Icon name="down" label="Rate down" />
        </button>
        <input
          aria-label="Comment on the rating"
          placeholder={own ? "Comment on your rating" : "Comment, then rate"}
          dir="auto"
          value={comment}
          maxLength={COMMENT_LIMIT}
          onChange={(event) => setComment(event.target.value)}
        />
        {!memory.retired_as && !decided && (
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
      </form>
      {remove.isPending && <Working what="Deleting" />}
      <History id={memory.id} />
    </section>
  );
}

/** The rating in force that the reader has given a memory. */
function useOwn(id: string): Rating | undefined {
  const me = useReviewer();
  return useRatings(id).data?.findLast((rating) => rating.undone_at === null && rating.reviewer === me);
}

function History({ id }: { readonly id: string }) {
  const ratings = useRatings(id);
  if (!ratings.data) return <Unshown what="The ratings" query={ratings} />;
  if (ratings.data.length === 0) return null;
  return (
    <ol className="ratings" aria-label="Ratings">
      {[...ratings.data].reverse().map((rating) => (
        <RatingLine key={rating.feedback_id} rating={rating} />
      ))}
    </ol>
  );
}

/** A rating in words: its direction, its comment, and who gave it when. */
function RatingLine({ rating }: { readonly rating: Rating }) {
  const undo = useUndoRating();
  const { comment, reviewer, created_at, undone_at } = rating;
  const up = rating.rating > 0;
  return (
    <li className={undone_at ? "undone" : ""}>
      <span className={up ? "good" : "bad"}>
        <Icon name={up ? "up" : "down"} label={up ? "Up" : "Down"} />
      </span>
      <span className="said">{comment ? <OneLine text={comment} /> : <span className="muted">No comment</span>}</span>
      <span className="muted by">
        {reviewer && (
          <>
            <OneLine text={reviewer} />,{" "}
          </>
        )}
        <time dateTime={created_at}>{exactMoment(created_at)}</time>
      </span>
      {undone_at ? (
        <span className="muted">Removed</span>
      ) : (
        <button type="button" className="quiet" disabled={undo.isPending} onClick={() => undo.mutate(rating)}>
          Undo
        </button>
      )}
    </li>
  );
}
