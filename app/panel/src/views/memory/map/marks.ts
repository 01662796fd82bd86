/** Marks of memories on the map: a colour and a shape, each of which is enough to tell them apart. */

import { symbolCircle, symbolSquare, symbolTriangle } from "d3-shape";
import type { NodeView } from "../../../api/schema";
import { toneOf } from "../../../parts/marks";
import { SHAPES, type Shape, shapeAt, triangleDown } from "../../../parts/shapes";

export const COLOURINGS = ["cluster", "quality", "score"] as const;
export type Colouring = (typeof COLOURINGS)[number];

export interface Mark {
  readonly name: string;
  /** A variable of the style sheet. */
  readonly colour: string;
  readonly shape: Shape;
  /** In square pixels, at the map's usual size. */
  readonly area: number;
  readonly opacity: number;
}

const AREA = 42;
export const UNRATED: Mark = { name: "unrated", colour: "--muted", shape: symbolCircle, area: 18, opacity: 0.55 };
/** Out of the span of time, or of a cluster that is not looked at. */
export const FAINT: Mark = { name: "faint", colour: "--muted", shape: symbolCircle, area: 10, opacity: 0.22 };

/** Lengths of dashes and gaps by relation, so that no colour is needed to tell links apart; `derived_from` is not broken. */
const DASHES: Readonly<Record<string, readonly number[]>> = {
  next: [2, 3],
  supersedes: [9, 3, 2, 3],
  mentions: [9, 3],
  same_entity: [5, 4],
  similar: [1, 4],
  same_task: [6, 2, 1, 2],
};

export function dashesOf(relation: string): readonly number[] {
  return DASHES[relation] ?? [];
}

export function clusterMark(cluster: number): Mark {
  const place = cluster % SHAPES.length;
  return { name: `cluster-${place}`, colour: `--series-${place}`, shape: shapeAt(place), area: AREA, opacity: 1 };
}

/** Up and green, down and red, or dim: the more ratings agree, the larger. */
export function qualityMark(quality: number): Mark {
  if (quality === 0) return UNRATED;
  const area = AREA * (0.75 + 0.4 * Math.abs(quality));
  if (quality > 0) return { name: `up-${quality}`, colour: "--good", shape: symbolTriangle, area, opacity: 1 };
  return { name: `down${quality}`, colour: "--bad", shape: triangleDown, area, opacity: 1 };
}

const SCORE_MARKS: Readonly<Record<ReturnType<typeof toneOf>, Mark>> = {
  good: { name: "score-good", colour: "--good", shape: symbolTriangle, area: AREA, opacity: 1 },
  middling: { name: "score-middling", colour: "--warn", shape: symbolSquare, area: AREA, opacity: 1 },
  bad: { name: "score-bad", colour: "--bad", shape: triangleDown, area: AREA, opacity: 1 },
};

/** By the evaluator's score: up and green where it passed, down and red where it failed, dim without one. */
export function scoreMark(score: number | null): Mark {
  return score === null ? UNRATED : SCORE_MARKS[toneOf(score)];
}

export function markOf(node: NodeView, colouring: Colouring): Mark {
  if (colouring === "cluster") return clusterMark(node.cluster);
  return colouring === "quality" ? qualityMark(node.quality) : scoreMark(node.final_score);
}
