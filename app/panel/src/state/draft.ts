/** What somebody has typed and not sent: it survives Escape, another place, and a reload of the tab. */

import { useState } from "react";

const PREFIX = "priors-draft ";

export function useDraft(name: string, otherwise: string): readonly [string, (text: string) => void] {
  const [text, setText] = useState(() => window.sessionStorage.getItem(PREFIX + name) ?? otherwise);
  const set = (next: string) => {
    setText(next);
    if (next === otherwise) window.sessionStorage.removeItem(PREFIX + name);
    else window.sessionStorage.setItem(PREFIX + name, next);
  };
  return [text, set];
}

/** Forgets the drafts whose names begin so, once they are sent. */
export function forgetDrafts(beginning: string): void {
  for (const name of Object.keys(window.sessionStorage)) {
    if (name.startsWith(PREFIX + beginning)) window.sessionStorage.removeItem(name);
  }
}
