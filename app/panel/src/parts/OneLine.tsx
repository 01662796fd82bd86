const OVERRIDES = /[\u202d\u202e]/g;
/** Characters that turn the letters after them round, so that a name reads as another. */

/** A stored text without characters that reverse the direction of letters. */
export function unturned(text: string): string {
  return text.replace(OVERRIDES, "\ufffd");
}

/** A stored text of one line: in its own direction, which goes no further than it does. */
export function OneLine({ text }: { readonly text: string }) {
  return <bdi>{unturned(text)}</bdi>;
}
