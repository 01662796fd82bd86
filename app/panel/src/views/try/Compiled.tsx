import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { ContextView, ShortenedPart } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { capitalised, whole } from "../../parts/format";
import { Answered } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";
import { OneLine } from "../../parts/text";

/** A compiled context: its parts by tokens, what was cut, and the text that the model gets. */
export function Compiled({ id }: { readonly id: string }) {
  const found = useService().useQuery("get", "/api/contexts/{context_id}", { params: { path: { context_id: id } } }, ONCE);
  return (
    <Answered query={found} name="context">
      {(context) => <Whole context={context} />}
    </Answered>
  );
}

function Whole({ context }: { readonly context: ContextView }) {
  const { meta, trace } = context;
  const notes = trace.sources.flatMap(({ source, notes }) => notes.map((note) => `${source}: ${note}`));
  return (
    <div className="answer">
      <section className="answer" aria-label="Compiled context">
        <p className="row-facts">
          <strong>
            {whole(meta.total_tokens)} {meta.usable_tokens !== null && `of ${whole(meta.usable_tokens)}`} tokens
          </strong>
          {!trace.exact && <span>estimated</span>}
        </p>
        {trace.sources.map(
          ({ source, failure }) =>
            failure && (
              <p key={source} className="degradation">
                {source}: {failure}
              </p>
            ),
        )}
        {[...notes, ...trace.notes].map((note, place) => (
          <p key={place} className="muted">
            {note}
          </p>
        ))}
        <Table label="Parts" columns={COLUMNS} rows={partsOf(context)} keyOf={({ key }) => key} />
      </section>
      <section aria-label="Text for the model">
        <Copied title="Text for the model" text={textOf(context)} />
      </section>
    </div>
  );
}

interface Part {
  readonly key: string;
  readonly name: string;
  readonly source: string;
  readonly tokens: number;
  /** What was cut of it. */
  readonly cut: string;
}

const COLUMNS: readonly Column<Part>[] = [
  { name: "Part", cell: ({ name }) => <OneLine text={name} /> },
  { name: "From", cell: ({ source }) => capitalised(source) },
  { name: "Tokens", kind: "number", cell: ({ tokens }) => whole(tokens) },
  { name: "Cut to fit the budget", cell: ({ cut }) => cut },
];

/** The parts that the text has, then those that were left out. */
function partsOf({ sections, tools, trace: { cuts } }: ContextView): readonly Part[] {
  return [
    ...sections.map((section, place) => {
      const cut = cuts.find(({ id, after }) => id === section.id && after > 0);
      return { key: `${place}`, name: nameOf(section), source: section.source, tokens: section.tokens, cut: cut ? sentenceOf(cut) : "" };
    }),
    ...tools.map(({ name, tokens }) => ({ key: `tool ${name}`, name, source: "tool", tokens, cut: "" })),
    ...cuts
      .filter(({ after }) => after === 0)
      .map((cut, place) => ({ key: `cut ${place}`, name: nameOf(cut), source: cut.source, tokens: 0, cut: sentenceOf(cut) })),
  ];
}

function sentenceOf({ before, after, reason }: ShortenedPart): string {
  return `${after === 0 ? "left out" : "shortened"}, ${whole(before)} tokens${reason && `: ${reason}`}`;
}

/** The name of a part: its label without the marks of a heading. */
function nameOf({ id, label }: { readonly id: string; readonly label: string }): string {
  return label.replace(/^#+\s+/, "") || id;
}

/** The whole text that the model gets. */
function textOf({ markdown, system, messages }: ContextView): string {
  if (markdown !== null) return markdown;
  const given = system === null ? messages : [{ role: "system", content: system }, ...messages];
  return given.map(({ role, content }) => `${role}:\n${content}`).join("\n\n");
}
