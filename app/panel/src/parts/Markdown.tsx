import { lazy, Suspense } from "react";

const Rendered = lazy(() => import("./MarkdownText").then((loaded) => ({ default: loaded.MarkdownText })));

interface Props {
  readonly text: string;
  /** Each line of the text is a line on the page, as in what was made from JSON. */
  readonly lines?: boolean;
}

/** A memory's text. What renders Markdown is loaded once something is open; until then the text stands as it is. */
export function Markdown(props: Props) {
  return (
    <Suspense fallback={<div className="markdown lines">{props.text.slice(0, 2_000)}</div>}>
      <Rendered {...props} />
    </Suspense>
  );
}
