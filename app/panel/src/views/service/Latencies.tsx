import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import type { Latency } from "../../api/schema";
import { milliseconds, share, whole } from "../../parts/format";
import { type Column, Table } from "../../parts/Table";

const WIDTH = 88;
const HEIGHT = 14;

/** Half of the answers came before the bar's end, 95 in 100 before the first tick, 99 before the second. */
export function Latencies({ latencies }: { readonly latencies: readonly Latency[] }) {
  if (latencies.length === 0) return <p className="muted">No recalls yet. Try one with t.</p>;
  const width = scaleLinear([0, max(latencies, (latency) => latency.p99) ?? 1], [0, WIDTH - 2]);
  return <Table label="Response times" columns={[...COLUMNS, plotted(width)]} rows={latencies} keyOf={({ purpose }) => purpose} />;
}

const COLUMNS: readonly Column<Latency>[] = [
  { name: "Purpose", cell: ({ purpose }) => purpose },
  { name: "p50", kind: "number", cell: ({ p50 }) => milliseconds(p50) },
  { name: "p95", kind: "number", cell: ({ p95 }) => milliseconds(p95) },
  { name: "p99", kind: "number", cell: ({ p99 }) => milliseconds(p99) },
  { name: "Recalls", kind: "number", cell: ({ recalls }) => whole(recalls) },
  { name: "Hybrid", kind: "number", cell: ({ hybrid }) => share(hybrid) },
];

function plotted(width: (value: number) => number): Column<Latency> {
  return {
    name: "Plot",
    label: <span className="visually-hidden">Plot</span>,
    cell: ({ p50, p95, p99 }) => (
      <svg className="latency" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
        <rect className="half" y={3} height={HEIGHT - 6} width={width(p50)} />
        <line x1={width(p50)} x2={width(p99)} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        {[p95, p99].map((tick, place) => (
          <line key={place} x1={width(tick)} x2={width(tick)} y1={3} y2={HEIGHT - 3} />
        ))}
      </svg>
    ),
  };
}
