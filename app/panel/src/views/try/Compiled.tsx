import { scaleLinear } from "d3-scale";
import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { ContextView, ShortenedPart, SourceTrace } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { milliseconds, share, whole } from "../../parts/format";
import { Legend } from "../../parts/Legend";
import { Answered } from "../../parts/states";
import { OneLine } from "../../parts/text";

/** A compiled context: its parts by tokens, and what was cut. */
export function Compiled({ id }: { readonly id: string }) {
  const found = useService().useQuery("get", "/api/contexts/{context_id}", { params: { path: { context_id: id } } }, ONCE);
  return (
    <div className={`answer compiled ${found.isPlaceholderData ? "stale" : ""}`}>
      <Answered query={found} name="context">
        {(context) => <Whole context={context} />}
      </Answered>
    </div>
  );
}

function Whole({ context }: { readonly context: ContextView }) {
  const parts = partsOf(context);
  return (
    <>
      <section aria-label="Compiled context">
        <Head context={context} />
        <TokenBar label="Tokens by part" parts={parts} most={limitOf(context)} />
        <SourceLegend parts={parts} />
        <Cuts cuts={context.trace.cuts} />
        <Failures sources={context.trace.sources} notes={context.trace.notes} />
      </section>
      <Parts parts={parts} />
      <section aria-label="Text for the model">
        <Copied title="Text for the model" text={textOf(context)} />
      </section>
    </>
  );
}

/** The tokens that a context could have, or that it has without a budget. */
function limitOf({ meta }: ContextView): number {
  return Math.max(meta.usable_tokens ?? 0, meta.total_tokens);
}

const COUNTERS: Readonly<Record<string, string>> = { embedding: "of the embedding model" };

function Head({ context: { meta, trace } }: { readonly context: ContextView }) {
  const { total_tokens: tokens, usable_tokens: usable, prefix } = meta;
  return (
    <header>
      <h2>{usable === null ? `${whole(tokens)} tokens` : `${whole(tokens)} of ${whole(usable)} tokens`}</h2>
      <p className="row-facts">
        {meta.budget && (
          <span>
            {share(meta.budget.reserve_ratio)} of {whole(meta.budget.total)} stay free for the answer
          </span>
        )}
        <span>{trace.exact ? `counted with the tokenizer ${COUNTERS[trace.counter] ?? trace.counter}` : "estimated"}</span>
        {prefix.tokens > 0 && <span>the first {whole(prefix.tokens)} tokens can be cached</span>}
        <span>{milliseconds(trace.took_ms)}</span>
      </p>
    </header>
  );
}

function Cuts({ cuts }: { readonly cuts: readonly ShortenedPart[] }) {
  if (cuts.length === 0) return <p className="muted">Nothing was cut.</p>;
  return (
    <>
      <h3>Cut to fit the budget</h3>
      <ul className="cuts" aria-label="Cut parts">
        {cuts.map((cut, place) => (
          <li key={place}>
            <OneLine text={nameOf(cut)} />{" "}
            <span className="muted">
              {cut.after === 0
                ? `left out, ${whole(cut.before)} tokens`
                : `shortened from ${whole(cut.before)} to ${whole(cut.after)} tokens`}
              {cut.reason && `: ${cut.reason}`}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The sources that failed, and remarks on the others. */
function Failures({ sources, notes }: { readonly sources: readonly SourceTrace[]; readonly notes: readonly string[] }) {
  const remarks = sources.flatMap((source) => source.notes.map((note) => `${sourceLabel(source.source)}: ${note}`));
  return (
    <>
      {sources.map(
        ({ source, failure }) =>
          failure && (
            <p key={source} className="degradation">
              {sourceLabel(source)}: {failure}
            </p>
          ),
      )}
      {[...remarks, ...notes].map((note, place) => (
        <p key={place} className="muted">
          {note}
        </p>
      ))}
    </>
  );
}

function Parts({ parts }: { readonly parts: readonly Part[] }) {
  const most = Math.max(1, ...parts.map(({ tokens }) => tokens));
  return (
    <section aria-label="Parts">
      <header>
        <h2>{parts.length === 1 ? "1 part" : `${whole(parts.length)} parts`}</h2>
      </header>
      <ol className="hits">
        {parts.map((part) => (
          <li key={part.key}>
            <div className="hit-head">
              <strong className="row-title">
                <OneLine text={part.name} />
              </strong>
              <span className="match">{whole(part.tokens)} tokens</span>
            </div>
            <TokenBar label="Tokens" parts={[part]} most={most} />
            <details>
              <summary>
                <span className="row-facts">
                  <span className="kind">{sourceLabel(part.source)}</span>
                  {part.facts.map((fact) => (
                    <span key={fact}>{fact}</span>
                  ))}
                </span>
              </summary>
              <pre tabIndex={0} className="wrapped" dir="auto">
                {part.content}
              </pre>
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}

const HEIGHT = 14;
const GAP = 0.3;

interface Props {
  readonly label: string;
  readonly parts: readonly Part[];
  /** The tokens that fill the bar. */
  readonly most: number;
}

/** The parts of a context as a stacked bar by tokens; the free rest of the budget stands empty. */
function TokenBar({ label, parts, most }: Props) {
  const width = scaleLinear([0, most || 1], [0, 100]).clamp(true);
  const said = parts.map(({ name, tokens }) => `${name} ${whole(tokens)}`).join(", ");
  let at = 0;
  return (
    <svg className="token-bar" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${said}`}>
      {parts.map(({ key, name, source, tokens }) => {
        const from = width(at);
        at += tokens;
        return (
          <rect key={key} className={`source-${source}`} x={from} width={Math.max(0, width(at) - from - GAP)} height={HEIGHT}>
            <title>{`${name} (${sourceLabel(source)}): ${whole(tokens)} tokens`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The colours of the sources that gave these parts. */
function SourceLegend({ parts }: { readonly parts: readonly Part[] }) {
  const given = new Set(parts.map(({ source }) => source));
  const entries = SOURCES.filter(({ name }) => given.has(name)).map(({ name, label }) => ({ colour: `source-${name}`, label }));
  return <Legend label="Sources" entries={entries} />;
}

export interface Part {
  readonly key: string;
  readonly name: string;
  readonly source: string;
  readonly tokens: number;
  readonly content: string;
  readonly facts: readonly string[];
}

const SOURCES: readonly { readonly name: string; readonly label: string }[] = [
  { name: "given", label: "Given" },
  { name: "temporal", label: "Latest turns" },
  { name: "semantic", label: "Related" },
  { name: "knowledge", label: "Knowledge" },
  { name: "cues", label: "Cues" },
  { name: "state", label: "State" },
  { name: "observation", label: "Observation" },
  { name: "tool", label: "Tools" },
];

function sourceLabel(source: string): string {
  return SOURCES.find(({ name }) => name === source)?.label ?? source;
}

/** The name of a part: its label without the marks of a heading. */
export function nameOf({ id, label }: { readonly id: string; readonly label: string }): string {
  return label.replace(/^#+\s+/, "") || id;
}

export function partsOf({ sections, tools }: ContextView): readonly Part[] {
  return [
    ...sections.map((section, place) => ({
      key: `section ${place}`,
      name: nameOf(section),
      source: section.source,
      tokens: section.tokens,
      content: section.content,
      facts: [
        `priority ${section.priority}`,
        section.mode,
        `worth ${section.worth.toFixed(2)}`,
        ...(section.reference ? ["reference"] : []),
      ],
    })),
    ...tools.map((tool) => ({
      key: `tool ${tool.name}`,
      name: tool.name,
      source: "tool",
      tokens: tool.tokens,
      content: JSON.stringify({ description: tool.description, schema: tool.schema }, null, 2),
      facts: [`priority ${tool.priority}`],
    })),
  ];
}

/** The whole text that the model gets. */
export function textOf({ markdown, system, messages }: ContextView): string {
  if (markdown !== null) return markdown;
  const given = system === null ? messages : [{ role: "system", content: system }, ...messages];
  return given.map(({ role, content }) => `${role}:\n${content}`).join("\n\n");
}
