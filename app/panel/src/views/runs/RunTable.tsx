import { extent } from "d3-array";
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { useState } from "react";
import type { RunSummary } from "../../api/schema";
import { termsOf } from "../../parts/excerpt";
import { day, duration, money, whole } from "../../parts/format";
import { RowLink } from "../../parts/list";
import { Score, Verdict } from "../../parts/marks";
import { Marked, OneLine } from "../../parts/text";
import { changeAddress, linkWith } from "../../state/address";
import { type Asked, COLUMNS, durationOf, whenOf } from "./asked";

export const AT_FIRST = 50;
/** Rows, and as many more on request. */

export function lineOf(id: string): string {
  return `run-${id}`;
}

interface Props {
  readonly runs: readonly RunSummary[];
  readonly asked: Asked;
  readonly rows: number;
}

export function RunTable({ runs, asked, rows }: Props) {
  const terms = termsOf(asked.filters.text);
  return (
    <table className="plain runs-table">
      <thead>
        <tr>
          {COLUMNS.map((column) => (
            <Heading key={column.name} column={column} asked={asked} />
          ))}
        </tr>
      </thead>
      <tbody>
        {runs.slice(0, rows).map((run) => (
          <Row key={run.run_id} run={run} open={run.run_id === asked.open} terms={terms} />
        ))}
      </tbody>
    </table>
  );
}

const NUMBERS: ReadonlySet<string> = new Set(["duration", "tokens", "cost", "score"]);
const ORDERS = { asc: "ascending", desc: "descending" } as const;

/** A column's name, which sorts by it; pressed again, the other way round. */
function Heading({ column: { name, label, first }, asked }: { readonly column: (typeof COLUMNS)[number]; readonly asked: Asked }) {
  const sorted = asked.sort === name;
  const turned = asked.order === "asc" ? "desc" : "asc";
  return (
    <th scope="col" className={`column-${name} ${NUMBERS.has(name) ? "number" : ""}`} aria-sort={sorted ? ORDERS[asked.order] : undefined}>
      <button type="button" className="quiet" onClick={() => changeAddress({ sort: name, order: sorted ? turned : first })}>
        {label}
        <span aria-hidden className="direction">
          {sorted ? (asked.order === "asc" ? "▲" : "▼") : ""}
        </span>
      </button>
    </th>
  );
}

function Row({ run, open, terms }: { readonly run: RunSummary; readonly open: boolean; readonly terms: readonly string[] }) {
  const took = durationOf(run);
  return (
    <tr id={lineOf(run.run_id)} className={open ? "run open" : "run"}>
      <td className="column-task">
        <RowLink href={linkWith({ run: run.run_id })} open={open} className="run-link">
          <Marked text={run.task || run.run_id} terms={terms} />
        </RowLink>
        <span className="row-facts">
          {run.task && (
            <span>
              <OneLine text={run.run_id} />
            </span>
          )}
          {run.task_type && <span>{run.task_type}</span>}
        </span>
      </td>
      <td className="column-agent">{run.agent}</td>
      <td className="column-when">
        <time dateTime={whenOf(run)}>{day(whenOf(run))}</time>
      </td>
      <td className="number column-duration">{took === null ? "" : duration(took)}</td>
      <td className="number column-tokens">{run.tokens === null ? "" : whole(run.tokens)}</td>
      <td className="number column-cost">{run.cost === null ? "" : money(run.cost)}</td>
      <td className="number column-score">
        <Rounds scores={run.round_scores} />
        <Score value={run.final_score} />
      </td>
      <td className="column-verdict">
        <Verdict value={run.verdict} />
      </td>
    </tr>
  );
}

const WIDTH = 40;
const HEIGHT = 14;
const LEAST_SPAN = 2;
/** Points of the score that fill the height: smaller changes look small. */

/** The scores of a run's rounds as a small line; the detail names them. */
function Rounds({ scores }: { readonly scores: readonly number[] }) {
  if (scores.length < 2) return null;
  const x = scaleLinear([0, scores.length - 1], [1, WIDTH - 1]);
  const [least = 0, most = 10] = extent(scores) as [number?, number?];
  const y = scaleLinear([Math.min(least, most - LEAST_SPAN), most], [HEIGHT - 2, 2]);
  const path = line<number>(
    (_score, place) => x(place),
    (score) => y(score),
  )(scores);
  return (
    <svg
      className="sparkline"
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`Rounds: ${scores.map((score) => score.toFixed(1)).join(", ")}`}
    >
      <path d={path ?? ""} />
    </svg>
  );
}

/** The number of rows on the page, and the means to show more. */
export function useRows(): readonly [number, (to: number) => void] {
  const [rows, setRows] = useState(AT_FIRST);
  return [rows, (to) => setRows((now) => Math.max(now, to))];
}
