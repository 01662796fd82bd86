/** What cues, their kinds and their fields are called, the same in every view. */

import { capitalised } from "../../../parts/format";

/** A kind, or the name of a field, as words. */
function kindName(kind: string): string {
  return kind.replaceAll("_", " ");
}

export function heading(name: string): string {
  return capitalised(kindName(name));
}

export function Kind({ kind }: { readonly kind: string }) {
  return <span className={`cue-kind ${kind}`}>{kindName(kind)}</span>;
}
