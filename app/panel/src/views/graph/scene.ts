/** From the service's coordinates to places on the page, and what is found there. Pure. */

import { extent, least, median } from "d3-array";
import { polygonContains } from "d3-polygon";
import { type Quadtree, quadtree } from "d3-quadtree";
import { scaleLinear } from "d3-scale";
import type { ZoomTransform } from "d3-zoom";
import type { Cluster, GraphNode, Linked } from "../../api/types";
import type { Span } from "./asked";

/** A memory at its place, in pixels of the map as it is when nobody has zoomed. */
export interface Dot {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export type Place = readonly [number, number];

const MARGIN = 28;
/** Pixels between the outermost memories and the edge, */
const CONTROLS = 28;
/** and on the right beyond them, where the buttons for zooming stand. */
const REACH = 9;
/** Pixels around a memory that still mean it. */

/** When a memory happened, in milliseconds; one without a date happened when it was stored. */
export function when(node: GraphNode): number {
  return Date.parse(node.occurred_at ?? node.created_at);
}

/** The whole map in the middle of the page, its proportions kept: distances mean the same in every direction. */
export function placed(nodes: readonly GraphNode[], { width, height }: Size): readonly Dot[] {
  const [left = 0, right = 0] = extent(nodes, (node) => node.x) as [number?, number?];
  const [bottom = 0, top = 0] = extent(nodes, (node) => node.y) as [number?, number?];
  const room = [Math.max(1, width - CONTROLS - 2 * MARGIN), Math.max(1, height - 2 * MARGIN)] as const;
  const each = Math.min(room[0] / (right - left || 1), room[1] / (top - bottom || 1));
  const x = scaleLinear([left, right === left ? left + 1 : right], around((width - CONTROLS) / 2, ((right - left || 1) * each) / 2));
  const y = scaleLinear([top, bottom === top ? top - 1 : bottom], around(height / 2, ((top - bottom || 1) * each) / 2));
  if (left === right && bottom === top) return nodes.map((node) => ({ node, x: (width - CONTROLS) / 2, y: height / 2 }));
  return nodes.map((node) => ({ node, x: x(node.x), y: y(node.y) }));
}

function around(middle: number, half: number): [number, number] {
  return [middle - half, middle + half];
}

export function isShown(node: GraphNode, clusters: ReadonlySet<number>, span: Span | null): boolean {
  if (clusters.size > 0 && !clusters.has(node.cluster)) return false;
  if (!span) return true;
  const moment = when(node);
  return moment >= span.from && moment <= span.to;
}

export function indexed(dots: readonly Dot[]): Quadtree<Dot> {
  return quadtree<Dot>([...dots], (dot) => dot.x, (dot) => dot.y);
}

export function dotAt(index: Quadtree<Dot>, transform: ZoomTransform, [x, y]: Place): Dot | undefined {
  return index.find(transform.invertX(x), transform.invertY(y), REACH / transform.k);
}

/** The memories within a polygon on the page. */
export function within(dots: readonly Dot[], transform: ZoomTransform, polygon: readonly Place[]): readonly string[] {
  const region = polygon.map((place) => transform.invert([...place]));
  return dots.filter(({ x, y }) => polygonContains(region, [x, y])).map(({ node }) => node.id);
}

/** Two corners as a polygon. */
export function rectangle([left, top]: Place, [right, bottom]: Place): readonly Place[] {
  return [[left, top], [right, top], [right, bottom], [left, bottom]];
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

/** A cluster's first terms at that member of those shown which is next to their midst; the largest cluster first. */
export function labelsOf(clusters: readonly Cluster[], dots: readonly Dot[]): readonly Label[] {
  return clusters.flatMap(({ id, terms }) => {
    const members = dots.filter(({ node }) => node.cluster === id);
    const x = median(members, (dot) => dot.x);
    const y = median(members, (dot) => dot.y);
    const text = terms.slice(0, TERMS).join(" · ");
    if (x === undefined || y === undefined || text === "") return [];
    const middle = least(members, (dot) => Math.hypot(dot.x - x, dot.y - y));
    return middle ? [{ text, x: middle.x, y: middle.y }] : [];
  });
}
