import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import type { Latency } from "../../api/schema";
import { milliseconds, share, whole } from "../../parts/format";
import { TableHead } from "../../parts/TableHead";

const COLUMNS = [
  { name: "Purpose" },
  ...["p50", "p95", "p99", "Recalls", "Hybrid"].map((name) => ({ name, kind: "number" as const })),
  { name: "Plot", label: <span className="visually-hidden">Plot</span> },
];
const WIDTH = 88;
const HEIGHT = 14;

/** Half of the answers came before the bar's end, 95 in 100 before the first tick, 99 before the second. */
export function Latencies({ latencies }: { readonly latencies: readonly Latency[] }) {
  if (latencies.length === 0) return <p className="muted">No recalls yet. Try one with t.</p>;
  const width = scaleLinear([0, max(latencies, (latency) => latency.p99) ?? 1], [0, WIDTH - 2]);
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label="Response times">
      <table className="plain">
        <TableHead columns={COLUMNS} />
        <tbody>
          {latencies.map((latency) => (
            <tr key={latency.purpose}>
              <td>{latency.purpose}</td>
              <td className="number">{milliseconds(latency.p50)}</td>
              <td className="number">{milliseconds(latency.p95)}</td>
              <td className="number">{milliseconds(latency.p99)}</td>
              <td className="number">{whole(latency.recalls)}</td>
              <td className="number">{share(latency.hybrid)}</td>
              <td>
                <svg className="latency" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
                  <rect className="half" y={3} height={HEIGHT - 6} width={width(latency.p50)} />
                  <line x1={width(latency.p50)} x2={width(latency.p99)} y1={HEIGHT / 2} y2={HEIGHT / 2} />
                  <line x1={width(latency.p95)} x2={width(latency.p95)} y1={3} y2={HEIGHT - 3} />
                  <line x1={width(latency.p99)} x2={width(latency.p99)} y1={3} y2={HEIGHT - 3} />
                </svg>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
