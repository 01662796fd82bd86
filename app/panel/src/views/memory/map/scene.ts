/** From the service's coordinates to places on the page, and what is found there. Pure. */

import { extent, least } from "d3-array";
import { type ZoomTransform, zoomIdentity } from "d3-zoom";
import type { Cluster, Filters, NodeView } from "../../../api/schema";

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A memory at its place, in pixels of the map as it is when nobody has zoomed. */
export interface Dot extends Point {
  readonly node: NodeView;
}

export interface Label extends Point {
  readonly text: string;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export type Place = readonly [number, number];
/** Two opposite corners of a rectangle on the page. */
export type Region = readonly [Place, Place];

const MARGIN = 28;
/** Pixels between the outermost memories and the edge, */
const CONTROLS = 28;
/** and on the right beyond them, where the buttons stand. */
const REACH = 9;
/** Pixels around a memory that still mean it. */
const CLOSEST = 8;
/** Times that a few matches are enlarged, at most: their surroundings stay in view. */
const TERMS = 2;
/** Words of a label. */

/** Compares the moment that the service compares: of the event, or of the storage; a chunk of an undated report has none. */
export function isWithin({ kind, occurred_at, created_at }: NodeView, { since, until }: Filters): boolean {
  const moment = Date.parse(occurred_at ?? (kind === "chunk" ? "" : created_at));
  return (!since || moment >= Date.parse(since)) && (!until || moment < Date.parse(until));
}

/** Returns the place on the page of a point of the map: the whole map is in the middle and keeps its proportions. */
export function scaleOf(nodes: readonly NodeView[], { width, height }: Size): (point: Point) => Point {
  const [left = 0, right = 0] = extent(nodes, (node) => node.x) as [number?, number?];
  const [bottom = 0, top = 0] = extent(nodes, (node) => node.y) as [number?, number?];
  const room = [Math.max(1, width - CONTROLS - 2 * MARGIN), Math.max(1, height - 2 * MARGIN)] as const;
  const each = Math.min(room[0] / (right - left || 1), room[1] / (top - bottom || 1));
  return ({ x, y }) => ({
    x: (width - CONTROLS) / 2 + (x - (left + right) / 2) * each,
    y: height / 2 - (y - (bottom + top) / 2) * each,
  });
}

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

export function dotAt(dots: readonly Dot[], transform: ZoomTransform, [x, y]: Place): Dot | undefined {
  const distance = (dot: Dot) => Math.hypot(transform.applyX(dot.x) - x, transform.applyY(dot.y) - y);
  const nearest = least(dots, distance);
  return nearest && distance(nearest) <= REACH ? nearest : undefined;
}

export function idsInside(dots: readonly Dot[], transform: ZoomTransform, region: Region): readonly string[] {
  const [left = 0, right = 0] = extent(region, ([x]) => transform.invertX(x)) as [number?, number?];
  const [top = 0, bottom = 0] = extent(region, ([, y]) => transform.invertY(y)) as [number?, number?];
  return dots.filter(({ x, y }) => x >= left && x <= right && y >= top && y <= bottom).map(({ node }) => node.id);
}

/** The first terms of each cluster that has memories among these. */
export function labelsOf(clusters: readonly Cluster[], scale: (point: Point) => Point, nodes: readonly NodeView[]): readonly Label[] {
  const present = new Set(nodes.map(({ cluster }) => cluster));
  return clusters
    .filter(({ id, terms }) => present.has(id) && terms.length > 0)
    .map((cluster) => ({ text: cluster.terms.slice(0, TERMS).join(" · "), ...scale(cluster) }));
}
