import { marked } from "./excerpt";
import { unturned } from "./OneLine";

interface Props {
  readonly text: string;
  readonly terms: readonly string[];
}

/** A line of stored text with the words that were searched for marked in it. */
export function Marked(props: Props) {
  return (
    <bdi>
      <Pieces {...props} />
    </bdi>
  );
}

/** The same for an element that has a direction of its own. */
export function Pieces({ text, terms }: Props) {
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
