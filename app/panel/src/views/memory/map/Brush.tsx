import { brushX, type D3BrushEvent } from "d3-brush";
import { select } from "d3-selection";
import { useEffect, useRef } from "react";

const HANDLE = 24;
/** Pixels of an edge that moves it. */

type Range = readonly [number, number];

interface Props {
  readonly width: number;
  readonly height: number;
  readonly steps: number;
  /** The selected steps; null for all. */
  readonly range: Range | null;
  readonly change: (range: Range | null) => void;
}

/** A selection on the time bars: drawn, moved, or moved at one of its edges. */
export function Brush({ width, height, steps, range, change }: Props) {
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
