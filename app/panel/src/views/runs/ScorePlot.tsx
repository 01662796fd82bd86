import { extent, group } from "d3-array";
import { scaleLinear, scaleUtc } from "d3-scale";
import { line, symbol } from "d3-shape";
import type { RunPoint } from "../../api/schema";
import { Link } from "../../parts/Link";
import { SHAPES, type Shape, shapeAt } from "../../parts/shapes";
import { linkWith } from "../../state/address";
import { useWidth } from "../../state/width";

const HEIGHT = 132;
const MARGIN = { top: 6, right: 8, bottom: 18, left: 22 };
const AREA = 26;
const SMOOTHED = 5;
/** Runs that a point of the line is the mean of. */
const MINUTE = 60_000;
/** Milliseconds; in less, the axis would count seconds without a date. */
const DAY = 24 * 60 * MINUTE;
const AROUND = 3 * DAY;

interface Props {
  readonly points: readonly RunPoint[];
  /** The task types of all runs, whether or not the points have them: a type keeps its colour. */
  readonly types: readonly string[];
  readonly taskType: string;
  readonly chooseType: (taskType: string | null) => void;
  readonly open: string | null;
}

/** Scores over time: a shape and a colour for each task type, so that either alone tells them apart. */
export function ScorePlot({ points, types, taskType, chooseType, open }: Props) {
  const [width, frame] = useWidth();
  const series = [...group(points, (point) => point.task_type)].sort(([one], [other]) => one.localeCompare(other));
  const x = scaleUtc(spanOf(points), [MARGIN.left, Math.max(MARGIN.left + 1, width - MARGIN.right)]);
  const y = scaleLinear([0, 10], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  return (
    <figure className="plot" ref={frame}>
      <figcaption>Score over time</figcaption>
      {points.length > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="group"
          aria-label={points.length === 1 ? "The score of one run" : `Scores of ${points.length} runs over time`}
        >
          {[0, 5, 7, 10].map((tick) => (
            <g key={tick} className={tick === 7 ? "tick pass" : "tick"}>
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
              <text x={MARGIN.left - 6} y={y(tick)} dy="0.32em" textAnchor="end">
                {tick}
              </text>
            </g>
          ))}
          {x
            .ticks(Math.max(2, Math.floor(width / 110)))
            .filter(isDay)
            .map((tick) => (
              <text key={tick.getTime()} className="date" x={x(tick)} y={HEIGHT - 3} textAnchor="middle">
                {x.tickFormat()(tick)}
              </text>
            ))}
          <path className="mean" d={meanLine(points, x, y)} />
          {series.map(([type, ofType]) => (
            <g key={type} className={`series-${colourOf(types, type)}`}>
              {ofType.map((point) => (
                <Point
                  key={point.run_id}
                  href={linkWith({ run: point.run_id })}
                  point={point}
                  shape={shapeOf(types, type)}
                  x={x(new Date(point.happened_at))}
                  y={y(point.final_score)}
                  open={point.run_id === open}
                />
              ))}
            </g>
          ))}
        </svg>
      )}
      <ul className="legend" aria-label="Legend">
        {types.map((type) => (
          <li key={type}>
            <button
              type="button"
              className="quiet"
              aria-pressed={type === taskType}
              onClick={() => chooseType(type === taskType ? null : type)}
            >
              <svg className={`swatch series-${colourOf(types, type)}`} viewBox="-5 -5 10 10" width="10" height="10" aria-hidden>
                <path d={symbol(shapeOf(types, type), AREA)() ?? ""} />
              </svg>
              {type || "No task type"}
            </button>
          </li>
        ))}
      </ul>
    </figure>
  );
}

interface PointProps {
  readonly href: string;
  readonly point: RunPoint;
  readonly shape: Shape;
  readonly x: number;
  readonly y: number;
  readonly open: boolean;
}

/** The list says the same to those who do not point: a plot of hundreds of stops is no help on a keyboard. */
function Point({ href, point, shape, x, y, open }: PointProps) {
  const said = `${point.run_id}: ${point.final_score.toFixed(1)}${point.verdict ? `, ${point.verdict}` : ""}`;
  return (
    <Link href={href} tabIndex={-1} aria-label={said}>
      <path className={open ? "point open" : "point"} transform={`translate(${x},${y})`} d={symbol(shape, open ? AREA * 4 : AREA)() ?? ""}>
        <title>{said}</title>
      </path>
    </Link>
  );
}

/** An axis of days has no hours. */
function isDay(tick: Date): boolean {
  return tick.getTime() % DAY === 0;
}

/** From the first to the last; runs of one moment stand in the middle of their days. */
function spanOf(points: readonly RunPoint[]): [number, number] {
  const [first = 0, last = 0] = extent(points, (point) => Date.parse(point.happened_at)) as [number?, number?];
  return last - first < MINUTE ? [first - AROUND, last + AROUND] : [first, last];
}

type Scale = (value: Date) => number;

/** The mean of a run and those just before it. */
function meanLine(points: readonly RunPoint[], x: Scale, y: (value: number) => number): string {
  const ordered = [...points].sort((one, other) => one.happened_at.localeCompare(other.happened_at));
  const means = ordered.map((point, place) => {
    const window = ordered.slice(Math.max(0, place - SMOOTHED + 1), place + 1);
    return [new Date(point.happened_at), window.reduce((sum, item) => sum + item.final_score, 0) / window.length] as const;
  });
  return (
    line<readonly [Date, number]>(
      (mean) => x(mean[0]),
      (mean) => y(mean[1]),
    )(means) ?? ""
  );
}

function colourOf(types: readonly string[], type: string): number {
  return Math.min(SHAPES.length - 1, types.indexOf(type));
}

function shapeOf(types: readonly string[], type: string): Shape {
  return shapeAt(types.indexOf(type));
}
