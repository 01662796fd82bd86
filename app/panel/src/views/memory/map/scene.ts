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
const TERMS = 2;
/** Words of a label. */
const ANY = { least: 0, most: Number.POSITIVE_INFINITY };
/** The factors by which matches are enlarged: the surroundings of a few stay in view. */
export const ENLARGED = { least: 1, most: 8 };

/** Compares the moment that the service compares: of the event, or of the storage; a chunk of an undated report has none. */
export function isWithin({ kind, occurred_at, created_at }: NodeView, { since, until }: Filters): boolean {
  const moment = Date.parse(occurred_at ?? (kind === "chunk" ? "" : created_at));
  return (!since || moment >= Date.parse(since)) && (!until || moment < Date.parse(until));
}

/** The transform by which these points fill the map, between two factors: it stays in proportion, and leaves room for the buttons. */
export function fitting(points: readonly Point[], { width, height }: Size, factors = ANY): ZoomTransform {
  const [left = 0, right = 0] = extent(points, ({ x }) => x) as [number?, number?];
  const [top = 0, bottom = 0] = extent(points, ({ y }) => y) as [number?, number?];
  const room = [(width - CONTROLS - 2 * MARGIN) / (right - left || 1), (height - 2 * MARGIN) / (bottom - top || 1)];
  return zoomIdentity
    .translate((width - CONTROLS) / 2, height / 2)
    .scale(Math.min(factors.most, Math.max(factors.least, Math.min(...room))))
    .translate(-(left + right) / 2, -(top + bottom) / 2);
}

/** Points of the service, whose second axis leads upwards, at their places on the page. */
export function placed<T extends Point>(points: readonly T[], whole: ZoomTransform): readonly (Point & { readonly node: T })[] {
  return points.map((node) => ({ node, x: whole.applyX(node.x), y: whole.applyY(-node.y) }));
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
export function labelsOf(clusters: readonly Cluster[], whole: ZoomTransform, nodes: readonly NodeView[]): readonly Label[] {
  const present = new Set(nodes.map(({ cluster }) => cluster));
  const named = clusters.filter(({ id, terms }) => present.has(id) && terms.length > 0);
  return placed(named, whole).map(({ node, x, y }) => ({ text: node.terms.slice(0, TERMS).join(" · "), x, y }));
}
