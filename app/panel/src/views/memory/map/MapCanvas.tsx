import { select } from "d3-selection";
import { type D3ZoomEvent, type ZoomBehavior, zoom, zoomIdentity } from "d3-zoom";
import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useAround } from "../../../api/queries";
import type { Cluster, NodeView } from "../../../api/schema";
import { day } from "../../../parts/format";
import { Icon, type IconName } from "../../../parts/Icon";
import { Quality, Score } from "../../../parts/marks";
import { OneLine } from "../../../parts/text";
import { useDebounced } from "../../../state/debounced";
import { useScheme } from "../../../state/theme";
import { useSize } from "../../../state/width";
import { LinkLegend } from "./Legend";
import { type Colouring, markOf } from "./marks";
import { Painter, type Scene } from "./paint";
import {
  type Dot,
  dotAt,
  fitting,
  idsInside,
  indexed,
  type Line,
  labelsOf,
  linesOf,
  type Place,
  placed,
  rectangle,
  type Size,
  scaleOf,
} from "./scene";

export type Tool = "move" | "rectangle" | "lasso";

const LEAST_ZOOM = 0.5;
const MOST_ZOOM = 40;
const STEP = 1.4;
const PAN = 60;
/** Pixels that an arrow key moves the map. */
const CLICK = 4;
/** Pixels that a pointer may move and still have clicked. */
const REST_MILLISECONDS = 120;
/** Time that a pointer stays on a memory before its links are loaded, in milliseconds. */
const ARROWS: Readonly<Record<string, Place>> = {
  ArrowLeft: [PAN, 0],
  ArrowRight: [-PAN, 0],
  ArrowUp: [0, PAN],
  ArrowDown: [0, -PAN],
};

interface MapCanvasProps {
  readonly nodes: readonly NodeView[];
  readonly clusters: readonly Cluster[];
  readonly shown: (node: NodeView) => boolean;
  readonly colouring: Colouring;
  readonly chosen: ReadonlySet<string>;
  readonly current: string | null;
  /** The text of an answered search, whose matches fill the map; empty for the whole map, null while the answer is not there. */
  readonly fitted: string | null;
  readonly tool: Tool;
  readonly choose: (ids: readonly string[], adding: boolean) => void;
  /** Selects a memory, or takes it out of the selection. A double click calls this twice, which changes nothing. */
  readonly toggle: (id: string) => void;
  readonly open: (id: string) => void;
}

interface Pointed {
  readonly dot: Dot;
  readonly at: Place;
}

/** The map itself. Those who do not point have the list beside it, which holds the same memories. */
export function MapCanvas({ nodes, clusters, shown, colouring, chosen, current, fitted, tool, choose, toggle, open }: MapCanvasProps) {
  const [size, frame] = useSize();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const region = useRef<Place[] | null>(null);
  const dragged = useRef(false);
  const scheme = useScheme();

  const scale = useMemo(() => scaleOf(nodes, size), [nodes, size]);
  const dots = useMemo(() => placed(nodes, scale), [nodes, scale]);
  const visible = useMemo(() => dots.filter(({ node }) => shown(node)), [dots, shown]);
  const index = useMemo(() => indexed(visible), [visible]);
  const labels = useMemo(() => labelsOf(clusters, scale, visible), [clusters, scale, visible]);
  const faint = useMemo(() => dots.filter(({ node }) => !shown(node)), [dots, shown]);
  const drawn = useMemo(
    () => visible.map((dot) => ({ dot, mark: markOf(dot.node, colouring) })).sort((one, other) => one.mark.area - other.mark.area),
    [visible, colouring],
  );
  const ringed = useMemo(() => pointed?.dot ?? dots.find(({ node }) => node.id === current), [pointed, dots, current]);
  const { lines, beyond } = useLines(ringed, visible);
  const scene: Omit<Scene, "region"> = { size, faint, shown: drawn, chosen, current: ringed, lines, labels };
  const { paint, transform, zoomed } = useDrawing(canvas, region, scene, tool, () => setPointed(null));
  useEffect(() => paint(true), [scheme, paint]);
  const fit = useRef("");
  useEffect(() => {
    if (fitted === null) return;
    const wanted = fitted && `${fitted} ${visible.length}`;
    if (wanted === fit.current || size.width === 0) return;
    fit.current = wanted;
    zoomed((behaviour, target) => behaviour.transform(target, wanted ? fitting(visible, size) : zoomIdentity));
    // A memory that changes and still matches moves no map.
  }, [fitted, visible, size]);

  const at = (event: { readonly clientX: number; readonly clientY: number }): Place => {
    const box = canvas.current?.getBoundingClientRect();
    return [event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0)];
  };
  const hit = (place: Place) => dotAt(index, transform(), place);

  const pressed = (event: PointerEvent<HTMLCanvasElement>) => {
    dragged.current = false;
    if (event.button !== 0 || !event.isPrimary || (tool === "move" && !event.shiftKey)) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    region.current = [at(event)];
    setPointed(null);
  };
  const moved = (event: PointerEvent<HTMLCanvasElement>) => {
    const place = at(event);
    const drawing = region.current;
    if (drawing) {
      const [start = place] = drawing;
      region.current = tool === "lasso" ? [...drawing, place] : [...rectangle(start, place)];
      paint();
    } else if (event.buttons === 0) {
      const dot = hit(place);
      if (dot !== pointed?.dot) setPointed(dot ? { dot, at: place } : null);
    }
  };
  const released = (event: PointerEvent<HTMLCanvasElement>) => {
    const drawing = region.current;
    region.current = null;
    if (!drawing || drawing.length < 2) return;
    paint();
    const far = drawing.some(([x, y]) => Math.hypot(x - (drawing[0]?.[0] ?? 0), y - (drawing[0]?.[1] ?? 0)) > CLICK);
    dragged.current = far;
    if (far) choose(idsInside(visible, transform(), drawing), event.shiftKey);
  };
  const abandoned = () => {
    region.current = null;
    paint();
  };
  const keyed = (event: KeyboardEvent<HTMLCanvasElement>) => {
    const arrow = ARROWS[event.key];
    const zooming = ZOOMS.find(({ keys }) => keys.includes(event.key));
    if (arrow) zoomed((behaviour, target) => behaviour.translateBy(target, arrow[0] / transform().k, arrow[1] / transform().k));
    else if (zooming) zoomed(zooming.change);
    else return;
    event.preventDefault();
  };

  return (
    <div className={`map ${tool}`} ref={frame}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${nodes.length} memories`}
        aria-describedby="map-keys"
        onPointerDown={pressed}
        onPointerMove={moved}
        onPointerUp={released}
        onPointerCancel={abandoned}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => {
          const dot = dragged.current ? undefined : hit(at(event));
          if (dot && (event.shiftKey || tool !== "move")) toggle(dot.node.id);
          setPointed(dot ? { dot, at: at(event) } : null);
        }}
        onDoubleClick={(event) => {
          const dot = hit(at(event));
          if (dot) open(dot.node.id);
        }}
        onKeyDown={keyed}
      />
      <p id="map-keys" className="visually-hidden">
        Arrow keys move the map. Plus and minus zoom. 0 shows the whole map. The list beside the map has the same memories.
      </p>
      <div className="zooms">
        {ZOOMS.map(({ icon, label, keys, change }) => (
          <button key={icon} type="button" className="icon" title={`${label} (${keys[0]})`} onClick={() => zoomed(change)}>
            <Icon name={icon} label={label} />
          </button>
        ))}
      </div>
      <LinkLegend lines={lines} beyond={beyond} />
      {pointed && <Tooltip node={pointed.dot.node} at={pointed.at} size={size} clusters={clusters} />}
    </div>
  );
}

const NO_LINES: readonly Line[] = [];

/** The links of the memory that the pointer or the reader is on, and how many lead to memories that are not shown. */
function useLines(dot: Dot | undefined, visible: readonly Dot[]) {
  const id = dot?.node.id ?? null;
  const settled = useDebounced(id, REST_MILLISECONDS);
  const { data } = useAround(settled);
  return useMemo(() => {
    if (!dot || !data || id !== settled) return { lines: NO_LINES, beyond: 0 };
    const lines = linesOf(dot, data.links, visible);
    return { lines, beyond: new Set(data.links.map(({ memory_id }) => memory_id)).size - lines.length };
  }, [dot, data, id, settled, visible]);
}

type Behaviour = ZoomBehavior<HTMLCanvasElement, unknown>;
type Target = ReturnType<typeof select<HTMLCanvasElement, unknown>>;
type Change = (behaviour: Behaviour, target: Target) => void;

const ZOOMS: readonly { readonly icon: IconName; readonly label: string; readonly keys: readonly string[]; readonly change: Change }[] = [
  { icon: "plus", label: "Zoom in", keys: ["+", "="], change: (behaviour, target) => behaviour.scaleBy(target, STEP) },
  { icon: "minus", label: "Zoom out", keys: ["−", "-"], change: (behaviour, target) => behaviour.scaleBy(target, 1 / STEP) },
  { icon: "whole", label: "Show the whole map", keys: ["0"], change: (behaviour, target) => behaviour.transform(target, zoomIdentity) },
];

type CanvasRef = { readonly current: HTMLCanvasElement | null };

/** Draws at most once a frame, without React: a map that is moved renders nothing anew. */
function useDrawing(
  canvas: CanvasRef,
  region: { readonly current: readonly Place[] | null },
  scene: Omit<Scene, "region">,
  tool: Tool,
  onMove: () => void,
) {
  const latest = useRef({ scene, tool, onMove });
  latest.current = { scene, tool, onMove };
  const painter = useRef<Painter | null>(null);
  const behaviour = useRef<Behaviour | null>(null);
  const at = useRef(zoomIdentity);
  const frame = useRef(0);
  const moving = useRef(false);

  const paint = useCallback(
    (forget = false) => {
      if (forget) painter.current?.forget();
      cancelAnimationFrame(frame.current);
      frame.current = requestAnimationFrame(() => {
        painter.current?.paint({ ...latest.current.scene, region: region.current ?? [] }, at.current, moving.current);
      });
    },
    [region],
  );

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    painter.current = new Painter(element);
    const made: Behaviour = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([LEAST_ZOOM, MOST_ZOOM])
      .filter((event: MouseEvent | TouchEvent | WheelEvent) => moves(event, latest.current.tool))
      .on("zoom", ({ transform, sourceEvent }: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        at.current = transform;
        moving.current = Boolean(sourceEvent);
        if (sourceEvent) latest.current.onMove();
        paint();
      })
      .on("end", () => {
        moving.current = false;
        paint();
      });
    behaviour.current = made;
    select(element).call(made).on("dblclick.zoom", null);
    return () => {
      cancelAnimationFrame(frame.current);
      select(element).on(".zoom", null);
    };
  }, [canvas, paint]);
  useEffect(() => paint());

  const transform = useCallback(() => at.current, []);
  const zoomed = (change: Change) => {
    if (canvas.current && behaviour.current) change(behaviour.current, select<HTMLCanvasElement, unknown>(canvas.current));
  };
  return { paint, transform, zoomed };
}

/** Wheels zoom, two fingers move and zoom, and one pointer moves unless it selects. */
function moves(event: MouseEvent | TouchEvent | WheelEvent, tool: Tool): boolean {
  if (event.type === "wheel") return true;
  if ("touches" in event && event.touches.length > 1) return true;
  return tool === "move" && !event.shiftKey && !event.ctrlKey && !("button" in event && event.button !== 0);
}

const WIDTH = 280;
const GAP = 14;

interface TooltipProps {
  readonly node: NodeView;
  readonly at: Place;
  readonly size: Size;
  readonly clusters: readonly Cluster[];
}

/** Names the memory under the pointer, on the side where there is room. */
function Tooltip({ node, at: [x, y], size, clusters }: TooltipProps) {
  const terms = clusters.find(({ id }) => id === node.cluster)?.terms ?? [];
  const moment = node.occurred_at ?? node.created_at;
  const left = Math.max(0, Math.min(x + GAP, size.width - WIDTH));
  const place = y > size.height / 2 ? { bottom: size.height - y + GAP } : { top: y + GAP };
  return (
    <div className="tooltip" role="tooltip" style={{ left, ...place }}>
      <p className="tooltip-title">
        <OneLine text={node.title} />
      </p>
      <p className="row-facts">
        <span className="kind">{node.kind}</span>
        {node.task_type && <span>{node.task_type}</span>}
        <time dateTime={moment}>{day(moment)}</time>
        <Quality value={node.quality} />
        <Score value={node.final_score} />
      </p>
      {node.tags.length > 0 && <p className="muted">{node.tags.join(", ")}</p>}
      {terms.length > 0 && <p className="muted">{terms.join(" · ")}</p>}
    </div>
  );
}
