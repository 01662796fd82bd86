/** The signs of a cue, the same in every view. */

import type { Cue } from "../../../api/schema";
import { times } from "../../../parts/format";
import { kindName } from "./asked";

export function Kind({ kind }: { readonly kind: string }) {
  return <span className={`cue-kind ${kind}`}>{kindName(kind)}</span>;
}

export function Counts({ cue: { fired, heeded, ignored } }: { readonly cue: Pick<Cue, "fired" | "heeded" | "ignored"> }) {
  if (fired === 0) return <span>never fired</span>;
  const outcomes = [heeded > 0 && `heeded ${times(heeded)}`, ignored > 0 && `ignored ${times(ignored)}`].filter(Boolean);
  return <span>{[`fired ${times(fired)}`, ...outcomes].join(", ")}</span>;
}
