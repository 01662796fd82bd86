import type { RunView } from "../../api/schema";
import { Details } from "../../parts/Details";
import { bytes, capitalised, decimal, exactMoment, money, whole } from "../../parts/format";
import { type Column, Table } from "../../parts/Table";

type Stage = Readonly<Record<string, unknown>>;
type Named = readonly [name: string, stage: Stage];

const LEADING = ["agent", "model", "input_tokens", "prompt_tokens", "output_tokens", "completion_tokens", "tokens", "cost"];
/** Columns that come first; the others follow as the stages name them. */

/** The stages of a run, with everything that they tell as a number or a word. */
export function Stages({ run }: { readonly run: RunView }) {
  const stages = Object.entries(run.stages).map(([name, stage]) => [name, (stage ?? {}) as Stage] as const);
  if (stages.length === 0) return null;
  return (
    <section>
      <h3>Stages</h3>
      <Table label="Stages" columns={columnsOf(stages.map(([, stage]) => stage))} rows={stages} keyOf={([name]) => name} />
    </section>
  );
}

function columnsOf(stages: readonly Stage[]): readonly Column<Named>[] {
  const named = [...new Set(stages.flatMap((stage) => Object.keys(stage)))];
  const simple = named.filter((name) => stages.some((stage) => ["number", "string"].includes(typeof stage[name])));
  const ordered = [...LEADING.filter((name) => simple.includes(name)), ...simple.filter((name) => !LEADING.includes(name))];
  return [
    { name: "Stage", cell: ([stage]) => stage },
    ...ordered.map(
      (name): Column<Named> => ({
        name,
        label: capitalised(name.replaceAll("_", " ")),
        kind: stages.some((stage) => typeof stage[name] === "number") ? "number" : undefined,
        cell: ([, values]) => shown(name, values[name]),
      }),
    ),
  ];
}

function shown(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "number") return "";
  if (name.includes("cost")) return money(value);
  return Number.isInteger(value) ? whole(value) : decimal(value, 2);
}

/** The fields of a run that the other sections do not show. */
export function RunDetails({ run }: { readonly run: RunView }) {
  const size = [run.lines !== null && `${whole(run.lines)} lines`, run.bytes !== null && bytes(run.bytes)].filter(Boolean).join(", ");
  return (
    <Details
      facts={[
        ["Output path", run.output_path],
        ["Output size", size],
        ["Started", run.started_at && exactMoment(run.started_at)],
        ["Finished", run.finished_at && exactMoment(run.finished_at)],
        ["Stored", exactMoment(run.created_at)],
      ]}
      metadata={run.metadata}
    >
      {run.queries.length > 0 && (
        <>
          <h4>Queries</h4>
          <ul className="fact-list">
            {run.queries.map((query, place) => (
              <li key={place} dir="auto">
                {query}
              </li>
            ))}
          </ul>
        </>
      )}
    </Details>
  );
}
