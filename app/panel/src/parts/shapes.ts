/** Shapes that go with the eight colours of `series-N`, so that either alone tells what they stand for. */

import { type SymbolType, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye } from "d3-shape";

export type Shape = SymbolType;

const ROOT_3 = Math.sqrt(3);

/** d3-shape's triangle, standing on its point. */
export const triangleDown: Shape = {
  draw(context, size) {
    const y = Math.sqrt(size / (ROOT_3 * 3));
    context.moveTo(0, y * 2);
    context.lineTo(ROOT_3 * y, -y);
    context.lineTo(-ROOT_3 * y, -y);
    context.closePath();
  },
};

export const SHAPES: readonly Shape[] = [
  symbolCircle,
  symbolSquare,
  symbolTriangle,
  symbolDiamond,
  symbolWye,
  symbolStar,
  symbolCross,
  triangleDown,
];

export function shapeAt(place: number): Shape {
  return SHAPES[place % SHAPES.length] ?? symbolCircle;
}
