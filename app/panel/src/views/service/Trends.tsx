import type { RecallDay } from "../../api/schema";
import { Chart } from "../../parts/Chart";
import { day, milliseconds, share, whole } from "../../parts/format";

/** Recalls over the latest days: their number, those that found nothing, those that were degraded, and their time. */
export function Trends({ days }: { readonly days: readonly RecallDay[] }) {
  return (
    <div className="trends">
      <Trend title="Recalls" days={days} value={({ recalls }) => recalls} shown={whole} />
      <Trend title="Found nothing" days={days} value={({ empty, recalls }) => empty / recalls} shown={share} most={1} tone="bad" />
      <Trend title="Degraded" days={days} value={({ degraded, recalls }) => degraded / recalls} shown={share} most={1} tone="warn" />
      <Trend title="p95 response time" days={days} value={({ p95_ms }) => p95_ms} shown={milliseconds} />
    </div>
  );
}

interface Props {
  readonly title: string;
  readonly days: readonly RecallDay[];
  readonly value: (one: RecallDay) => number | null;
  readonly shown: (value: number) => string;
  readonly most?: number;
  readonly tone?: "bad" | "warn";
}

/** One bar a day; a day without recalls has none. The bold value says of which day it is. */
function Trend({ title, days, value, shown, most, tone }: Props) {
  const points = days.map((one) => ({ name: day(one.day), value: one.recalls === 0 ? null : value(one) }));
  const latest = points.findLast((point) => point.value !== null);
  const top = most ?? (Math.max(...points.map((point) => point.value ?? 0)) || 1);
  return (
    <Chart title={title} points={points} ticks={[0, top]} shown={shown} tone={tone}>
      <strong>{shown(latest?.value ?? 0)}</strong> on {latest?.name}
    </Chart>
  );
}
