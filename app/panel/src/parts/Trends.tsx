import { max } from "d3-array";
import { scaleBand, scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import type { RecallDay } from "../api/types";
import { useWidth } from "../state/width";
import { day, milliseconds, share, whole } from "./format";

const HEIGHT = 64;
const TOP = 4;

/** Recalls over the latest days: their number, those that found nothing, those that were degraded, and their time. */
export function Trends({ days }: { readonly days: readonly RecallDay[] }) {
  if (days.every(({ recalls }) => recalls === 0)) return null;
  const of = (part: number, { recalls }: RecallDay) => (recalls === 0 ? null : part / recalls);
  return (
    <div className="trends">
      <Trend title="Recalls a day" days={days} value={({ recalls }) => recalls} shown={whole} bars />
      <Trend title="Found nothing" days={days} value={(one) => of(one.empty, one)} shown={share} most={1} tone="bad" />
      <Trend title="Degraded" days={days} value={(one) => of(one.degraded, one)} shown={share} most={1} tone="warn" />
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
  readonly bars?: boolean;
}

function Trend({ title, days, value, shown, most, tone, bars = false }: Props) {
  const [width, frame] = useWidth();
  const top = most ?? max(days, (one) => value(one) ?? 0) ?? 1;
  const x = scaleBand(days.map((one) => one.day), [0, Math.max(1, width)]).paddingInner(0.15);
  const y = scaleLinear([0, top || 1], [HEIGHT, TOP]);
  const middle = (one: RecallDay) => (x(one.day) ?? 0) + x.bandwidth() / 2;
  const known = days.filter((one) => value(one) !== null);
  const latest = known.at(-1);
  const path = line<RecallDay>()
    .defined((one) => value(one) !== null)
    .x(middle)
    .y((one) => y(value(one) ?? 0));
  return (
    <figure className={`trend ${tone ?? ""}`} ref={frame}>
      <figcaption>
        {title} {latest && <strong>{shown(value(latest) ?? 0)}</strong>}
      </figcaption>
      <svg width={width} height={HEIGHT} role="img" aria-label={said(title, known, value, shown)}>
        <line x1={0} x2={width} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
        {bars
          ? days.map((one) => <rect key={one.day} x={x(one.day)} width={x.bandwidth()} y={y(value(one) ?? 0)} height={HEIGHT - y(value(one) ?? 0)} />)
          : known.length === 1
            ? known.map((one) => <circle key={one.day} cx={middle(one)} cy={y(value(one) ?? 0)} r={2.5} />)
            : <path d={path(days) ?? ""} />}
      </svg>
      <p className="trend-days">
        <span>{days[0] && day(days[0].day)}</span>
        <span>{days.at(-1) && day(days.at(-1)?.day ?? "")}</span>
      </p>
    </figure>
  );
}

function said(title: string, days: readonly RecallDay[], value: Props["value"], shown: Props["shown"]): string {
  return `${title}: ${days.map((one) => `${day(one.day)} ${shown(value(one) ?? 0)}`).join(", ")}`;
}
