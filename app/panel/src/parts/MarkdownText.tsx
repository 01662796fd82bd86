import { memo, type ReactNode, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const AT_FIRST = 20_000;
/** Characters: a longer text is shown on request, because laying it out takes a while. */
const WEB = /^(https?:|mailto:)/i;

const components: Components = {
  a: ({ href, children }) =>
    href && WEB.test(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <span className="dead-link">{children}</span>
    ),
  // A picture would be fetched from another host; what it shows is said instead.
  img: ({ alt }) => <span className="dead-link">[image{alt ? `: ${alt}` : ""}]</span>,
  table: ({ children }) => (
    <div className="scroll-x" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  // Each block has the direction of its own text.
  p: ({ children }) => <p dir="auto">{children}</p>,
  ul: ({ children }) => <ul dir="auto">{children}</ul>,
  ol: ({ children, start }) => (
    <ol dir="auto" start={start}>
      {children}
    </ol>
  ),
  blockquote: ({ children }) => <blockquote dir="auto">{children}</blockquote>,
  td: ({ children }) => <td dir="auto">{children}</td>,
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
};

function Heading({ children }: { readonly children?: ReactNode }) {
  return <h4 dir="auto">{children}</h4>;
}

interface Props {
  readonly text: string;
  /** Each line of the text is a line on the page, as in what was made from JSON. */
  readonly lines?: boolean;
}

/** A memory's text: Markdown without HTML, without pictures, with links that lead to the web alone. */
export const MarkdownText = memo(function MarkdownText({ text, lines = false }: Props) {
  const [whole, setWhole] = useState(text.length <= AT_FIRST);
  return (
    <div className={lines ? "markdown lines" : "markdown"}>
      <ReactMarkdown remarkPlugins={[remarkGfm]} components={components}>
        {whole ? text : text.slice(0, AT_FIRST)}
      </ReactMarkdown>
      {!whole && (
        <button type="button" className="quiet" onClick={() => setWhole(true)}>
          Show the rest
        </button>
      )}
    </div>
  );
});
