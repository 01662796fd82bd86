/** From the service's coordinates to places on the page, and what is found there. Pure. */

import { descending, extent, rollup, sort } from "d3-array";
import { polygonContains } from "d3-polygon";
import { type Quadtree, quadtree } from "d3-quadtree";
import { type ZoomTransform, zoomIdentity } from "d3-zoom";
import type { Cluster, Linked, NodeView } from "../../../api/schema";
import type { Span } from "./asked";

/** A memory at its place, in pixels of the map as it is when nobody has zoomed. */
export interface Dot {
  readonly node: NodeView;
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

export type Place = readonly [number, number];

const MARGIN = 28;
/** Pixels between the outermost memories and the edge, */
const CONTROLS = 28;
/** and on the right beyond them, where the buttons for zooming stand. */
const REACH = 9;
/** Pixels around a memory that still mean it. */

/** The event date of a memory in milliseconds; without one, its storage date. An old report may be stored today: an undated chunk has no moment. */
export function when({ kind, occurred_at, created_at }: NodeView): number | undefined {
  const moment = occurred_at ?? (kind === "chunk" ? null : created_at);
  return moment === null ? undefined : Date.parse(moment);
}

/** Returns the place on the page of a point of the map: the whole map is in the middle and keeps its proportions. */
export function scaleOf(nodes: readonly NodeView[], { width, height }: Size): (point: Point) => Point {
  const [left = 0, right = 0] = extent(nodes, (node) => node.x) as [number?, number?];
  const [bottom = 0, top = 0] = extent(nodes, (node) => node.y) as [number?, number?];
  const room = [Math.max(1, width - CONTROLS - 2 * MARGIN), Math.max(1, height - 2 * MARGIN)] as const;
  const each = Math.min(room[0] / (right - left || 1), room[1] / (top - bottom || 1));
  const middle = { x: (left + right) / 2, y: (bottom + top) / 2 };
  return ({ x, y }) => ({ x: (width - CONTROLS) / 2 + (x - middle.x) * each, y: height / 2 - (y - middle.y) * each });
}

export function placed(nodes: readonly NodeView[], scale: (point: Point) => Point): readonly Dot[] {
  return nodes.map((node) => ({ node, ...scale(node) }));
}

export function isShown(node: NodeView, clusters: ReadonlySet<number>, span: Span | null): boolean {
  if (clusters.size > 0 && !clusters.has(node.cluster)) return false;
  if (!span) return true;
  const moment = when(node);
  return moment !== undefined && moment >= span.from && moment < span.to;
}

const CLOSEST = 8;
/** Times that a few matches are enlarged, at most: their surroundings stay in view. */

/** The transform by which these dots fill the map. */
export function fitting(dots: readonly Dot[], { width, height }: Size): ZoomTransform {
  const [left, right] = extent(dots, ({ x }) => x);
  const [top, bottom] = extent(dots, ({ y }) => y);
  if (left === undefined || top === undefined || right === undefined || bottom === undefined) return zoomIdentity;
  const room = Math.min((width - 2 * MARGIN) / Math.max(1, right - left), (height - 2 * MARGIN) / Math.max(1, bottom - top));
  return zoomIdentity
    .translate(width / 2, height / 2)
    .scale(Math.min(CLOSEST, Math.max(1, room)))
    .translate(-(left + right) / 2, -(top + bottom) / 2);
}

export function indexed(dots: readonly Dot[]): Quadtree<Dot> {
  return quadtree<Dot>(
    [...dots],
    (dot) => dot.x,
    (dot) => dot.y,
  );
}

export function dotAt(index: Quadtree<Dot>, transform: ZoomTransform, [x, y]: Place): Dot | undefined {
  return index.find(transform.invertX(x), transform.invertY(y), REACH / transform.k);
}

/** The memories within a polygon on the page. */
export function idsInside(dots: readonly Dot[], transform: ZoomTransform, polygon: readonly Place[]): readonly string[] {
  const region = polygon.map((place) => transform.invert([...place]));
  return dots.filter(({ x, y }) => polygonContains(region, [x, y])).map(({ node }) => node.id);
}

/** Two corners as a polygon. */
export function rectangle([left, top]: Place, [right, bottom]: Place): readonly Place[] {
  return [
    [left, top],
    [right, top],
    [right, bottom],
    [left, bottom],
  ];
}

/** A link between two memories that are both shown. */
export interface Line {
  readonly from: Dot;
  readonly to: Dot;
  readonly relation: string;
}

/** The links of a memory as far as they lead to others that are shown; of several with one, the first. */
export function linesOf(from: Dot, links: readonly Linked[], dots: readonly Dot[]): readonly Line[] {
  const relations = new Map<string, string>();
  for (const { memory_id, relation } of links) if (!relations.has(memory_id)) relations.set(memory_id, relation);
  return dots.flatMap((to) => {
    const relation = relations.get(to.node.id);
    return relation && to !== from ? [{ from, to, relation }] : [];
  });
}

export interface Label {
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

const TERMS = 2;

/** The first terms of each cluster whose label is the nearest of some memories shown; the one of most memories first. */
export function labelsOf(clusters: readonly Cluster[], scale: (point: Point) => Point, dots: readonly Dot[]): readonly Label[] {
  const all = clusters.map((cluster) => ({ text: cluster.terms.slice(0, TERMS).join(" · "), ...scale(cluster) }));
  const near = quadtree<Label>(
    all.filter(({ text }) => text !== ""),
    ({ x }) => x,
    ({ y }) => y,
  );
  const counts = rollup(
    dots,
    (members) => members.length,
    ({ x, y }) => near.find(x, y),
  );
  return sort(counts, ([, one], [, other]) => descending(one, other)).flatMap(([label]) => label ?? []);
}
