import type { ReactNode } from "react";
import { useSize } from "../state/width";

const HEIGHT = 110;
const TOP = 8;
const RIGHT = 8;
const BOTTOM = 20;
const LEFT = 48;
/** Pixels left of the plot for the values of the axis. */
const LETTER = 7;
/** Pixels of a letter of a name below the axis. */

interface Props {
  readonly title: string;
  /** What the caption says beside the title. */
  readonly children?: ReactNode;
  /** In their order; one without a value leaves its place empty. */
  readonly points: readonly { readonly name: string; readonly value: number | null }[];
  /** The values of the axis, the largest last. */
  readonly ticks: readonly number[];
  readonly shown: (value: number) => string;
  /** The value from which a point passes: then the points are a line, else bars, so that a single one is seen. */
  readonly pass?: number;
  readonly tone?: "bad" | "warn" | undefined;
}

/** Values over days or versions, with an axis. */
export function Chart({ title, children, points, ticks, shown, pass, tone }: Props) {
  const [{ width }, frame] = useSize();
  const step = Math.max(1, width - LEFT - RIGHT) / Math.max(1, points.length);
  const y = (value: number) => TOP + (1 - value / (ticks.at(-1) || 1)) * (HEIGHT - TOP - BOTTOM);
  const placed = points.map((point, place) => ({ ...point, x: LEFT + step * (place + 0.5) }));
  const known = placed.flatMap(({ name, value, x }) => (value === null ? [] : [{ said: `${name} ${shown(value)}`, value, x }]));
  const longest = Math.max(...points.map(({ name }) => name.length)) * LETTER;
  const every = Math.ceil(longest / step);
  return (
    <figure className={`plot ${tone ?? ""}`} ref={frame}>
      <figcaption>
        {title} {children}
      </figcaption>
      <svg width={width} height={HEIGHT} role="img" aria-label={`${title}: ${known.map(({ said }) => said).join(", ")}`}>
        {ticks.map((tick) => (
          <g key={tick} className={tick === pass ? "tick pass" : "tick"}>
            <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick)} dy="0.32em" textAnchor="end">
              {shown(tick)}
            </text>
          </g>
        ))}
        {placed
          .filter(({ x }, place) => place % every === Math.floor(every / 2) && x + longest / 2 <= width)
          .map(({ name, x }) => (
            <text key={name} x={x} y={HEIGHT - 4} textAnchor="middle">
              {name}
            </text>
          ))}
        {pass !== undefined && <path className="mean" d={`M${known.map(({ value, x }) => `${x},${y(value)}`).join("L")}`} />}
        {known.map(({ said, value, x }) =>
          pass === undefined ? (
            <rect key={said} x={x - step * 0.42} width={step * 0.84} y={Math.min(y(value), y(0) - 1)} height={Math.max(1, y(0) - y(value))}>
              <title>{said}</title>
            </rect>
          ) : (
            <circle key={said} className={value >= pass ? "passed" : "failed"} cx={x} cy={y(value)} r={4}>
              <title>{said}</title>
            </circle>
          ),
        )}
      </svg>
    </figure>
  );
}
