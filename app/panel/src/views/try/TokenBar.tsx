import { scaleLinear } from "d3-scale";
import { whole } from "../../parts/format";
import { Legend } from "../../parts/Legend";
import { type Part, SOURCES, sourceLabel } from "./parts";

const HEIGHT = 14;
const GAP = 0.3;

interface Props {
  readonly label: string;
  readonly parts: readonly Part[];
  /** The tokens that fill the bar. */
  readonly most: number;
}

/** The parts of a context as a stacked bar by tokens; the free rest of the budget stands empty. */
export function TokenBar({ label, parts, most }: Props) {
  const width = scaleLinear([0, most || 1], [0, 100]).clamp(true);
  const said = parts.map(({ name, tokens }) => `${name} ${whole(tokens)}`).join(", ");
  let at = 0;
  return (
    <svg className="token-bar" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${said}`}>
      {parts.map(({ key, name, source, tokens }) => {
        const from = width(at);
        at += tokens;
        return (
          <rect key={key} className={`source-${source}`} x={from} width={Math.max(0, width(at) - from - GAP)} height={HEIGHT}>
            <title>{`${name} (${sourceLabel(source)}): ${whole(tokens)} tokens`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The colours of the sources that gave these parts. */
export function SourceLegend({ parts }: { readonly parts: readonly Part[] }) {
  const given = new Set(parts.map(({ source }) => source));
  const entries = SOURCES.filter(({ name }) => given.has(name)).map(({ name, label }) => ({ colour: `source-${name}`, label }));
  return <Legend label="Sources" entries={entries} />;
}
