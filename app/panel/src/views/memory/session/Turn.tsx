import { memo, useEffect, useRef } from "react";
import type { SessionCueView, StoredMessage, ToolUse } from "../../../api/schema";
import { capitalised, exactMoment, share } from "../../../parts/format";
import { Link } from "../../../parts/Link";
import { MemoryLink } from "../../../parts/MemoryLink";
import { Markdown, OneLine, unturned } from "../../../parts/text";
import { linkWith } from "../../../state/address";
import { Kind } from "../cue/words";

interface Props {
  readonly message: StoredMessage;
  readonly cues: readonly SessionCueView[];
  /** The address names this turn: it is scrolled to and gets the focus. */
  readonly asked: boolean;
}

export const Turn = memo(function Turn({ message, cues, asked }: Props) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!asked) return;
    line.current?.scrollIntoView({ block: "center" });
    line.current?.focus({ preventScroll: true });
  }, [asked]);
  const { ordinal, role, text, at, tools, suspect } = message;
  return (
    <li
      ref={line}
      id={`turn-${ordinal}`}
      tabIndex={-1}
      className={`turn ${role} ${asked ? "asked" : ""}`}
      aria-current={asked ? "true" : undefined}
    >
      <p className="turn-head">
        <strong>{capitalised(role)}</strong>
        <Link className="turn-link" href={linkWith({ turn: String(ordinal) })} replace>
          turn {ordinal}
        </Link>
        {suspect && <span className="rule">kept out of histories</span>}
        {at && <time dateTime={at}>{exactMoment(at)}</time>}
      </p>
      <Said text={text} quotes={cues.map(({ quote }) => quote)} />
      {cues.map((cue) => (
        <Learnt key={cue.id} cue={cue} />
      ))}
      {tools.map((tool, place) => (
        <Tool key={place} tool={tool} />
      ))}
    </li>
  );
});

/** A turn's text as Markdown; one with quotes as it was written, so that they can be marked where they stand. */
function Said({ text, quotes }: { readonly text: string; readonly quotes: readonly string[] }) {
  const found = quotes.filter((quote) => quote !== "" && text.includes(quote));
  if (text === "") return null;
  if (found.length === 0) return <Markdown text={text} lines />;
  // The longest comes first: a quote within another is part of it.
  const literals = found.sort((one, other) => other.length - one.length).map((quote) => quote.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(${literals.join("|")})`));
  return (
    <p className="said" dir="auto">
      {pieces.map((piece, place) => (place % 2 === 1 ? <mark key={place}>{unturned(piece)}</mark> : unturned(piece)))}
    </p>
  );
}

function Learnt({ cue }: { readonly cue: SessionCueView }) {
  return (
    <div className="turn-cue">
      <p className="row-facts">
        <Kind kind={cue.kind} />
        <span>confidence {share(cue.confidence)}</span>
        <span>consequence {share(cue.consequence)}</span>
        {cue.state !== "active" && <span className="verdict">{cue.state}</span>}
      </p>
      <MemoryLink className="row-title" id={cue.id} title={cue.lesson} />
      <p className="muted">
        When: <OneLine text={cue.trigger} />
      </p>
    </div>
  );
}

function Tool({ tool: { name, input, result } }: { readonly tool: ToolUse }) {
  return (
    <details className="tool">
      <summary>
        <strong>{name}</strong> <code dir="ltr">{subjectOf(input)}</code>
      </summary>
      <pre tabIndex={0}>{JSON.stringify(input, null, 2)}</pre>
      {result && (
        <pre tabIndex={0} dir="auto" className="wrapped">
          {result}
        </pre>
      )}
    </details>
  );
}

const SUBJECTS = ["file_path", "path", "command", "pattern", "query", "url", "description"];
/** The inputs that tell most of what a tool does. */

function subjectOf(input: ToolUse["input"]): string {
  const texts = [...SUBJECTS.map((name) => input[name]), ...Object.values(input)];
  const text = texts.find((value): value is string => typeof value === "string") ?? "";
  return text.split("\n", 1)[0] ?? "";
}
