/** One line of a longer text, around the words that were searched for. Pure. */

/** A piece of a text; a match is marked. */
interface Piece {
  readonly text: string;
  readonly match: boolean;
}

const LENGTH = 220;
/** Characters of an excerpt: more than a row is wide. */
const SEARCHED = 10_000;
/** Characters of a text in which the best place for an excerpt is looked for. */
const BEFORE = 24;
/** Characters that stand before the first match. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu;
const STOP_WORDS: ReadonlySet<string> = new Set(
  "a an and are as at be by did do does for from had has have how if in into is it its not of on or our that the their then there these they this to was we were what when where which who why will with you your".split(
    " ",
  ),
);
const ENDING = 2;
/** Letters at the end of a longer term that a form of the same word may not have. */
const LONG = 5;

/** The beginnings of the words that a query is looking for: forms of one word share theirs. */
export function termsOf(query: string): readonly string[] {
  const words = [...query.toLowerCase().matchAll(WORD)].map(([word]) => word);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return [...new Set((telling.length ? telling : words).map(stemOf))];
}

function stemOf(word: string): string {
  return word.length > LONG ? word.slice(0, -ENDING) : word;
}

function isMatch(word: string, terms: readonly string[]): boolean {
  const lower = word.toLowerCase();
  return terms.some((term) => (term.length < LONG - 1 ? lower === term : lower.startsWith(term)));
}

/** The text in pieces, those that match one of the terms marked. */
export function marked(text: string, terms: readonly string[]): readonly Piece[] {
  if (terms.length === 0) return [{ text, match: false }];
  const pieces: Piece[] = [];
  let at = 0;
  for (const found of text.matchAll(WORD)) {
    if (!isMatch(found[0], terms)) continue;
    if (found.index > at) pieces.push({ text: text.slice(at, found.index), match: false });
    pieces.push({ text: found[0], match: true });
    at = found.index + found[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), match: false });
  return pieces;
}

const MARKUP =
  /^[ \t]*(#{1,6}|[-*+>|]+|\d+\.|```\w*)[ \t]+|[*`|]{1,3}|(?<![\p{L}\p{N}])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\p{L}\p{N}])|\[([^\]]*)\]\([^)]*\)/gmu;

/** Markdown as one line of plain text. */
function flat(text: string): string {
  return text.replace(MARKUP, "$2").replace(/\s+/g, " ").trim();
}

/** What a memory is called: its title, or the beginning of its text. */
export function nameOf({ title, body }: { readonly title: string; readonly body: string }): string {
  return title || excerptOf(body, "", []);
}

/** The line that says most of a memory beside its title: its beginning, or the place that was searched for. */
export function excerptOf(body: string, title: string, terms: readonly string[]): string {
  const text = withoutTitle(flat(body.slice(0, SEARCHED)), title);
  const first = densest(text, terms);
  if (first <= BEFORE * 2) return shortened(text, 0);
  const start = text.indexOf(" ", first - BEFORE) + 1;
  return `… ${shortened(text, Math.min(start, first))}`;
}

/** A text that begins with its title, or with the last heading of its title, without it. */
function withoutTitle(text: string, title: string): string {
  const said = [title, title.slice(title.lastIndexOf("›") + 1).trim()].find((name) => name !== "" && text.startsWith(name));
  return said ? text.slice(said.length).replace(/^[\s.:–-]+/, "") : text;
}

function shortened(text: string, start: number): string {
  return text.length - start > LENGTH ? `${text.slice(start, start + LENGTH)} …` : text.slice(start);
}

/** The place from which an excerpt's length contains the most terms. */
function densest(text: string, terms: readonly string[]): number {
  const found = [...text.matchAll(WORD)].filter(([word]) => isMatch(word, terms));
  let best = { place: 0, terms: 0 };
  for (const { index: place } of found) {
    const near = found.filter(({ index }) => index >= place && index < place + LENGTH / 2);
    const distinct = new Set(near.map(([word]) => stemOf(word.toLowerCase()))).size;
    if (distinct > best.terms) best = { place, terms: distinct };
  }
  return best.place;
}
