import { scaleBand, scaleLinear } from "d3-scale";
import type { EffectContrast, EffectMean } from "../../api/types";
import { decimal, share, whole, withMinus } from "../../parts/format";
import { Legend } from "../../parts/Legend";
import { useWidth } from "../../state/width";

const HEIGHT = 150;
const MARGIN = { top: 8, right: 8, bottom: 20, left: 22 };
const LABEL = 76;
/** Pixels of a label below the plot. */
const RADIUS = 3.5;
const NAMES: Readonly<Record<string, { readonly label: string; readonly digits: number }>> = {
  score: { label: "Score", digits: 2 },
  cost: { label: "Cost", digits: 4 },
  tokens: { label: "Tokens", digits: 0 },
  duration: { label: "Duration, s", digits: 1 },
  rounds: { label: "Rounds", digits: 2 },
  repeats: { label: "Repeated issues a judged run", digits: 2 },
};

interface MeasuresProps {
  readonly contrast: EffectContrast;
  readonly given: string;
  readonly without: string;
}

/** Each known measure of both groups, with the difference and its interval. */
export function Measures({ contrast, given, without }: MeasuresProps) {
  const known = contrast.measures.filter((measure) => measure.given ?? measure.without);
  return (
    <>
      <div className="scroll-x" tabIndex={0} role="region" aria-label={`${given} and ${without}`}>
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Mean</th>
              <th scope="col" className="number">{`${given} (${whole(contrast.given)})`}</th>
              <th scope="col" className="number">{`${without} (${whole(contrast.without)})`}</th>
              <th scope="col" className="number">
                Difference (95 %)
              </th>
            </tr>
          </thead>
          <tbody>
            {known.map((measure) => (
              <tr key={measure.name}>
                <td>{NAMES[measure.name]?.label ?? measure.name}</td>
                <td className="number">{meanOf(measure.given, measure.name)}</td>
                <td className="number">{meanOf(measure.without, measure.name)}</td>
                <td className="number">{differenceOf(measure)}</td>
              </tr>
            ))}
            {(contrast.repeat_rate ?? contrast.repeat_rate_without) !== null && (
              <tr>
                <td>Issues that had been named before</td>
                <td className="number">{rate(contrast.repeat_rate)}</td>
                <td className="number">{rate(contrast.repeat_rate_without)}</td>
                <td />
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {known.some(({ difference }) => difference?.low === null) && (
        <p className="muted">{"“No interval”: a group has too few runs to tell how much chance does, or all of its values are the same."}</p>
      )}
    </>
  );
}

function meanOf(mean: EffectMean | null, name: string): string {
  return mean ? number(mean.mean, name) : "–";
}

function differenceOf({ difference: mean, name }: EffectContrast["measures"][number]): string {
  if (!mean) return "–";
  if (mean.low === null || mean.high === null) return `${mean.mean > 0 ? "+" : ""}${number(mean.mean, name)} (no interval)`;
  const [middle, low, high] = [mean.mean, mean.low, mean.high].map((value) => `${value > 0 ? "+" : ""}${number(value, name)}`);
  return `${middle} (${low} to ${high})`;
}

function number(value: number, name: string): string {
  const digits = NAMES[name]?.digits ?? 2;
  return digits === 0 ? withMinus(whole(Math.round(value))) : decimal(value, digits).replace(/^−(?=[0.]+$)/, "");
}

function rate(value: number | null): string {
  return value === null ? "–" : share(value);
}

interface ContrastsProps {
  readonly title: string;
  readonly label: string;
  readonly parts: readonly EffectContrast[];
}

/** The runs of each part, as a plot of their scores and as a table. */
export function Contrasts({ title, label, parts }: ContrastsProps) {
  if (parts.length === 0) return null;
  return (
    <section className="wide">
      <h2>{title}</h2>
      <Plot title={`Mean score ${title.toLowerCase()}`} parts={parts} />
      <div className="scroll-x" tabIndex={0} role="region" aria-label={title}>
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">{label}</th>
              {["Runs", "Score", "Cost", "Tokens", "Duration, s", "Named before"].map((name) => (
                <th key={name} scope="col" className="number">
                  {name} <span className="muted">with / without</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <tr key={part.label}>
                <td>{part.label}</td>
                <td className="number">{`${whole(part.given)} / ${whole(part.without)}`}</td>
                {["score", "cost", "tokens", "duration"].map((name) => (
                  <td key={name} className="number">
                    {both(part, name)}
                  </td>
                ))}
                <td className="number">{`${rate(part.repeat_rate)} / ${rate(part.repeat_rate_without)}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function both(part: EffectContrast, name: string): string {
  const measure = part.measures.find((one) => one.name === name);
  return `${meanOf(measure?.given ?? null, name)} / ${meanOf(measure?.without ?? null, name)}`;
}

function Plot({ title, parts }: { readonly title: string; readonly parts: readonly EffectContrast[] }) {
  const [width, frame] = useWidth();
  const x = scaleBand(parts.map(({ label }) => label), [MARGIN.left, Math.max(MARGIN.left + 1, width - MARGIN.right)]);
  const y = scaleLinear([0, 10], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const every = Math.max(1, Math.ceil((parts.length * LABEL) / Math.max(1, width)));
  const middle = (label: string) => (x(label) ?? 0) + x.bandwidth() / 2;
  return (
    <figure className="plot" ref={frame}>
      <figcaption>{title}</figcaption>
      <Legend label="Groups" entries={[{ colour: "with-history", label: "With history" }, { colour: "without-history", label: "Without" }]} />
      <svg width={width} height={HEIGHT} role="img" aria-label={said(title, parts)}>
        {[0, 5, 10].map((tick) => (
          <g key={tick} className="tick">
            <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
            <text x={MARGIN.left - 6} y={y(tick)} dy="0.32em" textAnchor="end">
              {tick}
            </text>
          </g>
        ))}
        {parts.map(({ label }, place) =>
          place % every === 0 ? (
            <text key={label} x={middle(label)} y={HEIGHT - 4} textAnchor="middle">
              {label.length > 11 ? `${label.slice(0, 10)}…` : label}
            </text>
          ) : null,
        )}
        {parts.map((part) => {
          const score = part.measures.find(({ name }) => name === "score");
          return (
            <g key={part.label}>
              <Bar mean={score?.given ?? null} x={middle(part.label) - 5} y={y} colour="with-history" />
              <Bar mean={score?.without ?? null} x={middle(part.label) + 5} y={y} colour="without-history" />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

interface BarProps {
  readonly mean: EffectMean | null;
  readonly x: number;
  readonly y: (value: number) => number;
  readonly colour: string;
}

/** A mean as a point, its interval as a line. */
function Bar({ mean, x, y, colour }: BarProps) {
  if (!mean) return null;
  const within = (value: number) => Math.max(0, Math.min(10, value));
  return (
    <g className={colour}>
      {mean.low !== null && mean.high !== null && <line x1={x} x2={x} y1={y(within(mean.low))} y2={y(within(mean.high))} />}
      <circle cx={x} cy={y(mean.mean)} r={RADIUS} />
    </g>
  );
}

function said(title: string, parts: readonly EffectContrast[]): string {
  return `${title}: ${parts.map((part) => `${part.label} ${both(part, "score")}`).join(", ")}`;
}
