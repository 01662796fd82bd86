import type { Rating } from "../api/schema";
import { exactMoment } from "./format";
import { Icon } from "./Icon";
import { OneLine } from "./text";

/** A rating in words: its direction, its comment, and who gave it when. */
export function RatingWords({ rating: { rating, comment, reviewer, created_at } }: { readonly rating: Rating }) {
  const up = rating > 0;
  return (
    <>
      <span className={up ? "good" : "bad"}>
        <Icon name={up ? "up" : "down"} label={up ? "Up" : "Down"} />
      </span>
      <span className="said">{comment ? <OneLine text={comment} /> : <span className="muted">No comment</span>}</span>
      <span className="muted by">
        {reviewer && (
          <>
            <OneLine text={reviewer} />
            {", "}
          </>
        )}
        <time dateTime={created_at}>{exactMoment(created_at)}</time>
      </span>
    </>
  );
}
