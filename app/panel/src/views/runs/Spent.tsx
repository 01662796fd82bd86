import type { RunView } from "../../api/schema";
import { Details } from "../../parts/Details";
import { bytes, capitalised, decimal, exactMoment, money, whole } from "../../parts/format";

type Stage = Readonly<Record<string, unknown>>;

const LEADING = ["agent", "model", "input_tokens", "prompt_tokens", "output_tokens", "completion_tokens", "tokens", "cost"];
/** Columns that come first; the others follow as the stages name them. */

/** The stages of a run, with everything that they tell as a number or a word. */
export function Stages({ run }: { readonly run: RunView }) {
  const stages = Object.entries(run.stages).map(([name, stage]) => [name, (stage ?? {}) as Stage] as const);
  if (stages.length === 0) return null;
  const columns = columnsOf(stages.map(([, stage]) => stage));
  return (
    <section>
      <h3>Stages</h3>
      <div className="scroll-x" tabIndex={0} role="region" aria-label="Stages">
        <table>
          <thead>
            <tr>
              <th scope="col">Stage</th>
              {columns.map(({ name, numeric }) => (
                <th key={name} scope="col" className={numeric ? "number" : ""}>
                  {capitalised(name.replaceAll("_", " "))}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {stages.map(([stage, values]) => (
              <tr key={stage}>
                <td>{stage}</td>
                {columns.map(({ name, numeric }) => (
                  <td key={name} className={numeric ? "number" : ""}>
                    {shown(name, values[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function columnsOf(stages: readonly Stage[]) {
  const named = [...new Set(stages.flatMap((stage) => Object.keys(stage)))];
  const simple = named.filter((name) => stages.some((stage) => ["number", "string"].includes(typeof stage[name])));
  const ordered = [...LEADING.filter((name) => simple.includes(name)), ...simple.filter((name) => !LEADING.includes(name))];
  return ordered.map((name) => ({ name, numeric: stages.some((stage) => typeof stage[name] === "number") }));
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
