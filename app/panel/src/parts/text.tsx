/** Stored text: a line, a line with marked words, a title, and Markdown. */

import { lazy, Suspense } from "react";
import { marked } from "./excerpt";

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

interface MarkedProps {
  readonly text: string;
  readonly terms: readonly string[];
}

/** A line of stored text with the words that were searched for marked in it. */
function Marked(props: MarkedProps) {
  return (
    <bdi>
      <Pieces {...props} />
    </bdi>
  );
}

/** The same for an element that has a direction of its own. */
export function Pieces({ text, terms }: MarkedProps) {
  return marked(unturned(text), terms).map((piece, place) => (piece.match ? <mark key={place}>{piece.text}</mark> : piece.text));
}

const STEP = " › ";
/** Stands between the headings of a chunk's title. */

/** The title of a memory in a list: a chunk's own heading comes first, because the headings above it are its neighbours' too. */
export function Title({ title, terms = [] }: { readonly title: string; readonly terms?: readonly string[] }) {
  const place = title.lastIndexOf(STEP);
  if (place === -1) return <Marked text={title} terms={terms} />;
  return (
    <>
      <Marked text={title.slice(place + STEP.length)} terms={terms} />
      <span className="above">
        {" in "}
        <Marked text={title.slice(0, place)} terms={terms} />
      </span>
    </>
  );
}

const Rendered = lazy(() => import("./MarkdownText").then((loaded) => ({ default: loaded.MarkdownText })));

interface MarkdownProps {
  readonly text: string;
  /** Each line of the text is a line on the page, as in what was made from JSON. */
  readonly lines?: boolean;
}

/** A memory's text. What renders Markdown is loaded once something is open; until then the text stands as it is. */
export function Markdown(props: MarkdownProps) {
  return (
    <Suspense fallback={<div className="markdown lines">{props.text.slice(0, 2_000)}</div>}>
      <Rendered {...props} />
    </Suspense>
  );
}
