import type { MemoryEffect } from "../../api/types";
import { withMinus } from "../../parts/format";
import { Link } from "../../parts/Link";
import { linkTo } from "../../state/address";

interface Props {
  readonly title: string;
  readonly memories: readonly MemoryEffect[];
}

/** Memories by their effect, each with the evidence for it. */
export function Ranked({ title, memories }: Props) {
  return (
    <>
      <h3>{title}</h3>
      {memories.length === 0 ? (
        <p className="muted">No memory is known well enough.</p>
      ) : (
        <ol className="effect-memories">
          {memories.map((memory) => (
            <li key={memory.id}>
              <Link href={linkTo("/", { memory: memory.id })}>{memory.title}</Link>
              <span className="muted">{` ${memory.kind}, ${memory.basis}`}</span>
              {memory.flagged && (
                <Link className="effect-flag" href={linkTo("/review", { tab: "cues" })}>
                  in Review
                </Link>
              )}
              <p>{withMinus(memory.why)}</p>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
