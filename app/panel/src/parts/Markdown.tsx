import { memo, useState } from "react";
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
  h1: ({ children }) => <h4>{children}</h4>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h4>{children}</h4>,
  h5: ({ children }) => <h4>{children}</h4>,
  h6: ({ children }) => <h4>{children}</h4>,
};

/** A memory's text: Markdown without HTML, without pictures, with links that lead to the web alone. */
export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  const [whole, setWhole] = useState(text.length <= AT_FIRST);
  return (
    <div className="markdown">
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
