import { bin, extent, range, rollup } from "d3-array";
import { brushX, type D3BrushEvent } from "d3-brush";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { useEffect, useRef } from "react";
import type { NodeView } from "../../../api/schema";
import { day, exactMoment, whole } from "../../../parts/format";
import { Icon } from "../../../parts/Icon";
import { useWidth } from "../../../state/width";
import type { Span } from "./asked";
import { type Colouring, markOf, UNRATED } from "./marks";
import { when } from "./scene";

const STEPS = 40;
/** Pieces of time, of the same length. */
const HEIGHT = 48;
const GAP = 1;
const DAY_MILLISECONDS = 86_400_000;

interface DriftProps {
  readonly nodes: readonly NodeView[];
  readonly colouring: Colouring;
  readonly span: Span | null;
  readonly setSpan: (span: Span | null) => void;
  readonly shown: number;
}

/** The memories over time, and the span of time that the map shows: drawn on the bars, or moved by arrow keys. */
export function Drift({ nodes, colouring, span, setSpan, shown }: DriftProps) {
  const [width, frame] = useWidth();
  const [first = 0, latest = 0] = extent(nodes, when) as [number?, number?];
  if (latest <= first) return null;
  // The end of a span is not included.
  const last = latest + 1;
  const edges = range(STEPS + 1).map((step) => first + ((last - first) * step) / STEPS);
  const edge = (step: number) => edges[Math.max(0, Math.min(STEPS, step))] ?? first;
  const from = span ? nearest(edges, span.from) : 0;
  const to = span ? Math.max(from + 1, nearest(edges, span.to)) : STEPS;
  const set = (start: number, end: number) => {
    if (start <= 0 && end >= STEPS) setSpan(null);
    else setSpan({ from: edge(start), to: edge(end) });
  };
  const shift = (by: number) => {
    const least = Math.max(-from, Math.min(STEPS - to, by));
    set(from + least, to + least);
  };
  const said = last - first < 2 * DAY_MILLISECONDS ? exactMoment : day;
  const text = (step: number) => said(new Date(edge(step)).toISOString());
  const stride = Math.max(1, Math.round((to - from) / 2));
  return (
    <section className="drift" aria-label="Time">
      <div className="drift-line">
        <button type="button" className="icon" title="Earlier period" disabled={from === 0} onClick={() => shift(-stride)}>
          <Icon name="earlier" label="Earlier" />
        </button>
        <p role="status">
          {text(from)} – {text(to)}
          <span className="muted">
            {" "}
            · {whole(shown)} of {whole(nodes.length)} memories
          </span>
        </p>
        <button type="button" className="icon" title="Later period" disabled={to === STEPS} onClick={() => shift(stride)}>
          <Icon name="later" label="Later" />
        </button>
        <button type="button" className="quiet" disabled={!span} onClick={() => setSpan(null)}>
          All time
        </button>
      </div>
      <div className="drift-plot" ref={frame}>
        <Bars nodes={nodes} edges={edges} colouring={colouring} width={width} from={from} to={to} />
        <Brush
          width={width}
          height={HEIGHT}
          steps={STEPS}
          range={span ? [from, to] : null}
          change={(range) => (range ? set(...range) : setSpan(null))}
        />
        <input
          type="range"
          aria-label="From"
          min={0}
          max={STEPS}
          value={from}
          aria-valuetext={text(from)}
          onChange={(event) => set(Math.min(event.target.valueAsNumber, to - 1), to)}
        />
        <input
          type="range"
          aria-label="To"
          min={0}
          max={STEPS}
          value={to}
          aria-valuetext={text(to)}
          onChange={(event) => set(from, Math.max(event.target.valueAsNumber, from + 1))}
        />
      </div>
    </section>
  );
}

function nearest(edges: readonly number[], moment: number): number {
  const distances = edges.map((edge) => Math.abs(edge - moment));
  return distances.indexOf(Math.min(...distances));
}

interface BarsProps {
  readonly nodes: readonly NodeView[];
  readonly edges: readonly number[];
  readonly colouring: Colouring;
  readonly width: number;
  readonly from: number;
  readonly to: number;
}

/** The number of memories of each mark in each piece of time. */
function Bars({ nodes, edges, colouring, width, from, to }: BarsProps) {
  const [first = 0, last = 1] = [edges[0], edges.at(-1)];
  const pieces = bin<NodeView, number | undefined>().value(when).domain([first, last]).thresholds(edges.slice(1, -1))(nodes);
  const x = scaleLinear([0, STEPS], [0, Math.max(1, width)]);
  const y = scaleLinear([0, Math.max(1, ...pieces.map((piece) => piece.length))], [0, HEIGHT]);
  return (
    <svg className="bars" width={width} height={HEIGHT} aria-hidden>
      {pieces.map((piece, place) => {
        const counts = [
          ...rollup(
            piece,
            (members) => members.length,
            (node) => markOf(node, colouring).colour,
          ),
        ].sort();
        let top = HEIGHT;
        return (
          <g key={place} className={place >= from && place < to ? "" : "faint"}>
            {counts.map(([colour, count]) => {
              top -= y(count);
              return (
                <rect
                  key={colour}
                  x={x(place)}
                  y={top}
                  width={Math.max(1, x(1) - GAP)}
                  height={y(count)}
                  style={{ fill: `var(${colour})`, opacity: colour === UNRATED.colour ? UNRATED.opacity : 1 }}
                />
              );
            })}
          </g>
        );
      })}
    </svg>
  );
}

const HANDLE = 24;
/** Pixels of an edge that moves it. */

type Range = readonly [number, number];

interface BrushProps {
  readonly width: number;
  readonly height: number;
  readonly steps: number;
  /** The selected steps; null for all. */
  readonly range: Range | null;
  readonly change: (range: Range | null) => void;
}

/** A selection on the time bars: drawn, moved, or moved at one of its edges. */
function Brush({ width, height, steps, range, change }: BrushProps) {
  const group = useRef<SVGGElement>(null);
  const latest = useRef(change);
  latest.current = change;
  const dragging = useRef(false);
  const each = width / steps;

  useEffect(() => {
    if (!group.current || width === 0) return undefined;
    const taken = (selection: readonly [number, number]): Range => {
      const first = Math.min(steps - 1, Math.round(selection[0] / each));
      return [first, Math.max(first + 1, Math.round(selection[1] / each))];
    };
    const brush = brushX<unknown>()
      .extent([
        [0, 0],
        [width, height],
      ])
      .handleSize(HANDLE)
      .on("start brush end", ({ type, selection, sourceEvent }: D3BrushEvent<unknown>) => {
        if (!sourceEvent) return;
        dragging.current = type !== "end";
        if (selection) latest.current(taken(selection as [number, number]));
        else if (type === "end") latest.current(null);
      });
    const target = select<SVGGElement, unknown>(group.current);
    target.call(brush);
    if (range) target.call(brush.move, [range[0] * each, range[1] * each]);
    moves.current = (to) => target.call(brush.move, to ? [to[0] * each, to[1] * each] : null);
    return () => {
      target.on(".brush", null).selectAll("*").remove();
    };
    // The range is drawn by the next effect as it changes.
  }, [width, height, steps, each]);

  const moves = useRef<(range: Range | null) => void>(() => undefined);
  const [from, to] = range ?? [-1, -1];
  useEffect(() => {
    if (!dragging.current) moves.current(from < 0 ? null : [from, to]);
  }, [from, to]);

  return (
    <svg className="brush-plot" width={width} height={height} aria-hidden>
      <g ref={group} className="brush" />
    </svg>
  );
}
