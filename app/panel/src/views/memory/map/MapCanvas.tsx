import { select } from "d3-selection";
import { type D3ZoomEvent, type ZoomBehavior, zoom, zoomIdentity } from "d3-zoom";
import { type KeyboardEvent, type MouseEvent, type PointerEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import type { Cluster, NodeView } from "../../../api/schema";
import { Icon, type IconName } from "../../../parts/Icon";
import { Quality, Score } from "../../../parts/marks";
import { OneLine } from "../../../parts/text";
import { useShortcuts } from "../../../state/shortcuts";
import { useScheme } from "../../../state/theme";
import { useSize } from "../../../state/width";
import { Apart } from "../Row";
import { paint } from "./paint";
import { dotAt, ENLARGED, fitting, idsInside, labelsOf, type Place, placed, type Region, type Size } from "./scene";

const LEAST_ZOOM = 0.5;
const MOST_ZOOM = 40;
const STEP = 1.4;
const PAN = 60;
/** Pixels that an arrow key moves the map. */
const CLICK = 4;
/** Pixels that a pointer may move and still have clicked. */
const ARROWS: Readonly<Record<string, Place>> = {
  ArrowLeft: [PAN, 0],
  ArrowRight: [-PAN, 0],
  ArrowUp: [0, PAN],
  ArrowDown: [0, -PAN],
};

type Behaviour = ZoomBehavior<HTMLCanvasElement, unknown>;
type Target = ReturnType<typeof select<HTMLCanvasElement, unknown>>;
type Change = (behaviour: Behaviour, target: Target) => void;

const ZOOMS: readonly { readonly icon: IconName; readonly label: string; readonly keys: readonly string[]; readonly change: Change }[] = [
  { icon: "plus", label: "Zoom in", keys: ["+", "="], change: (behaviour, target) => behaviour.scaleBy(target, STEP) },
  { icon: "minus", label: "Zoom out", keys: ["−", "-"], change: (behaviour, target) => behaviour.scaleBy(target, 1 / STEP) },
  { icon: "whole", label: "Show the whole map", keys: ["0"], change: (behaviour, target) => behaviour.transform(target, zoomIdentity) },
];

interface Props {
  readonly nodes: readonly NodeView[];
  readonly visible: readonly NodeView[];
  readonly clusters: readonly Cluster[];
  readonly chosen: ReadonlySet<string>;
  readonly current: string | null;
  /** The text of an answered search, whose matches fill the map; empty for the whole map, null while the answer is not there. */
  readonly fitted: string | null;
  readonly brush: (ids: readonly string[], adding: boolean) => void;
  /** Selects a memory, or takes it out of the selection. A double click calls this twice, which changes nothing. */
  readonly toggle: (id: string) => void;
  readonly open: (id: string) => void;
}

/** The map itself. Those who do not point have the list beside it, which holds the same memories. */
export function MapCanvas({ nodes, visible, clusters, chosen, current, fitted, brush, toggle, open }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, frame] = useSize();
  const [selecting, setSelecting] = useState(false);
  const [region, setRegion] = useState<Region | null>(null);
  const [pointed, setPointed] = useState<string | null>(null);
  const [transform, zoomed] = useZoom(canvas, selecting);
  const scheme = useScheme();
  useShortcuts({ r: () => setSelecting(!selecting) });

  const whole = useMemo(() => fitting(placed(nodes, zoomIdentity), size), [nodes, size]);
  const dots = useMemo(() => placed(nodes, whole), [nodes, whole]);
  const seen = useMemo(() => new Set(visible), [visible]);
  const shown = useMemo(() => dots.filter(({ node }) => seen.has(node)), [dots, seen]);
  const faint = useMemo(() => dots.filter(({ node }) => !seen.has(node)), [dots, seen]);
  const labels = useMemo(() => labelsOf(clusters, whole, visible), [clusters, whole, visible]);
  const named = shown.find(({ node }) => node.id === pointed);
  const ringed = named ?? dots.find(({ node }) => node.id === current);
  useEffect(() => {
    if (canvas.current) paint(canvas.current, { size, transform, faint, shown, chosen, current: ringed, labels, region, scheme });
  }, [size, transform, faint, shown, chosen, ringed, labels, region, scheme]);
  const fit = useRef("");
  useEffect(() => {
    if (fitted === null || size.width === 0) return;
    const wanted = fitted && `${fitted} ${shown.length}`;
    if (wanted === fit.current) return;
    fit.current = wanted;
    zoomed((behaviour, target) => behaviour.transform(target, wanted && shown.length ? fitting(shown, size, ENLARGED) : zoomIdentity));
    // A memory that changes and still matches moves no map.
  }, [fitted, shown, size]);

  const hit = (event: MouseEvent) => dotAt(shown, transform, placeOf(event))?.node.id;
  const pressed = (event: PointerEvent<HTMLCanvasElement>) => {
    if (event.button !== 0 || !event.isPrimary || !(selecting || event.shiftKey)) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setRegion([placeOf(event), placeOf(event)]);
    setPointed(null);
  };
  const moved = (event: PointerEvent<HTMLCanvasElement>) => {
    if (region) setRegion([region[0], placeOf(event)]);
    else if (event.buttons === 0) setPointed(hit(event) ?? null);
  };
  const released = (event: PointerEvent<HTMLCanvasElement>) => {
    if (!region) return;
    const [[x, y], end] = [region[0], placeOf(event)];
    setRegion(null);
    const id = hit(event);
    if (Math.hypot(end[0] - x, end[1] - y) > CLICK) brush(idsInside(shown, transform, [[x, y], end]), event.shiftKey);
    else if (id) toggle(id);
  };
  const keyed = (event: KeyboardEvent<HTMLCanvasElement>) => {
    const arrow = ARROWS[event.key];
    const zooming = ZOOMS.find(({ keys }) => keys.includes(event.key));
    if (arrow) zoomed((behaviour, target) => behaviour.translateBy(target, arrow[0] / transform.k, arrow[1] / transform.k));
    else if (zooming) zoomed(zooming.change);
    else return;
    event.preventDefault();
  };

  return (
    <div className={`map ${selecting ? "selecting" : ""}`} ref={frame}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${nodes.length} memories`}
        aria-describedby="map-keys"
        onPointerDown={pressed}
        onPointerMove={moved}
        onPointerUp={released}
        onPointerCancel={() => setRegion(null)}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => setPointed(hit(event) ?? null)}
        onDoubleClick={(event) => {
          const id = hit(event);
          if (id) open(id);
        }}
        onKeyDown={keyed}
      />
      <p id="map-keys" className="visually-hidden">
        Arrow keys move the map. Plus and minus zoom. 0 shows the whole map. The list beside the map has the same memories.
      </p>
      <div className="zooms">
        <button
          type="button"
          className="icon"
          aria-pressed={selecting}
          title="Drag or click to select (r). Without it, hold Shift; with it, Shift adds to the selection."
          onClick={() => setSelecting(!selecting)}
        >
          <Icon name="rectangle" label="Select" />
        </button>
        {ZOOMS.map(({ icon, label, keys, change }) => (
          <button key={icon} type="button" className="icon" title={`${label} (${keys[0]})`} onClick={() => zoomed(change)}>
            <Icon name={icon} label={label} />
          </button>
        ))}
      </div>
      {named && <Tooltip node={named.node} at={transform.apply([named.x, named.y])} size={size} />}
    </div>
  );
}

function placeOf({ nativeEvent: { offsetX, offsetY } }: MouseEvent): Place {
  return [offsetX, offsetY];
}

/** Wheels zoom, two fingers move and zoom, and one pointer moves unless it selects. */
function useZoom(canvas: RefObject<HTMLCanvasElement | null>, selecting: boolean) {
  const [transform, setTransform] = useState(zoomIdentity);
  const latest = useRef(selecting);
  latest.current = selecting;
  const [behaviour] = useState<Behaviour>(() =>
    zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([LEAST_ZOOM, MOST_ZOOM])
      .filter((event) => event.type === "wheel" || event.touches?.length > 1 || !(latest.current || event.shiftKey || event.button))
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => setTransform(event.transform)),
  );
  const zoomed = (change: Change) => {
    if (canvas.current) change(behaviour, select<HTMLCanvasElement, unknown>(canvas.current));
  };
  useEffect(() => zoomed((made, target) => target.call(made).on("dblclick.zoom", null)), []);
  return [transform, zoomed] as const;
}

const WIDTH = 280;
const GAP = 14;

interface TooltipProps {
  readonly node: NodeView;
  readonly at: Place;
  readonly size: Size;
}

/** Names the memory under the pointer, on the side where there is room. */
function Tooltip({ node, at: [x, y], size }: TooltipProps) {
  const left = Math.max(0, Math.min(x + GAP, size.width - WIDTH));
  const place = y > size.height / 2 ? { bottom: size.height - y + GAP } : { top: y + GAP };
  return (
    <div className="tooltip" role="tooltip" style={{ left, ...place }}>
      <p className="tooltip-title">
        <OneLine text={node.title} />
      </p>
      <Apart {...node}>
        <Quality value={node.quality} />
        <Score value={node.final_score} />
      </Apart>
    </div>
  );
}
