import type { RecallDay } from "../api/schema";
import { useWidth } from "../state/width";
import { day, milliseconds, share, whole } from "./format";

const HEIGHT = 76;
const TOP = 6;
const BOTTOM = 4;
const AXIS = 48;
/** Pixels left of the plot for the values of the axis. */

/** Recalls over the latest days: their number, those that found nothing, those that were degraded, and their time. */
export function Trends({ days }: { readonly days: readonly RecallDay[] }) {
  if (days.every(({ recalls }) => recalls === 0)) return null;
  const of = (part: number, { recalls }: RecallDay) => (recalls === 0 ? null : part / recalls);
  return (
    <div className="trends">
      <Trend title="Recalls" days={days} value={({ recalls }) => recalls} shown={whole} />
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
}

/** One bar a day, so that a single day is seen; the bold value says of which day it is. */
function Trend({ title, days, value, shown, most, tone }: Props) {
  const [width, frame] = useWidth();
  const top = most ?? (Math.max(0, ...days.map((one) => value(one) ?? 0)) || 1);
  const step = Math.max(1, width - AXIS) / days.length;
  const y = (of: number) => TOP + (1 - of / top) * (HEIGHT - TOP - BOTTOM);
  const latest = days.findLast((one) => value(one) !== null && one.recalls > 0);
  return (
    <figure className={`trend ${tone ?? ""}`} ref={frame}>
      <figcaption>
        {title}
        {latest && (
          <>
            {" "}
            <strong>{shown(value(latest) ?? 0)}</strong> on {day(latest.day)}
          </>
        )}
      </figcaption>
      <svg width={width} height={HEIGHT} role="img" aria-label={said(title, days, value, shown)}>
        {[0, top].map((tick) => (
          <g key={tick} className="tick">
            <line x1={AXIS} x2={width} y1={y(tick)} y2={y(tick)} />
            <text x={AXIS - 4} y={y(tick)} dy={tick === 0 ? 0 : "0.7em"} textAnchor="end">
              {shown(tick)}
            </text>
          </g>
        ))}
        {days.map((one, place) => {
          const height = value(one);
          if (height === null || one.recalls === 0) return null;
          const at = Math.min(y(height), y(0) - 1);
          return (
            <rect key={one.day} x={AXIS + place * step} width={Math.max(1, step * 0.85)} y={at} height={y(0) - at}>
              <title>{`${day(one.day)}: ${shown(height)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p className="trend-days">
        <span>{days[0] && day(days[0].day)}</span>
        <span>{days.at(-1) && day(days.at(-1)?.day ?? "")}</span>
      </p>
    </figure>
  );
}

function said(title: string, days: readonly RecallDay[], value: Props["value"], shown: Props["shown"]): string {
  const known = days.filter((one) => one.recalls > 0 && value(one) !== null);
  return `${title}: ${known.map((one) => `${day(one.day)} ${shown(value(one) ?? 0)}`).join(", ")}`;
}
