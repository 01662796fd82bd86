/** Draws the map on a canvas. */

import { type SymbolType, symbol, symbolDiamond2, symbolsFill } from "d3-shape";
import type { ZoomTransform } from "d3-zoom";
import type { Dot, Label, Place, Region, Size } from "./scene";

interface Scene {
  readonly size: Size;
  readonly transform: ZoomTransform;
  /** Memories that are drawn below all others and cannot be pointed at. */
  readonly faint: readonly Dot[];
  readonly shown: readonly Dot[];
  readonly chosen: ReadonlySet<string>;
  readonly current: Dot | undefined;
  readonly labels: readonly Label[];
  readonly region: Region | null;
  readonly scheme: string;
}

const AREA = 42;
/** Square pixels of a mark at the map's usual size, */
const CHOSEN = 1.7;
/** times this where it is selected, */
const LARGEST = 2.6;
/** and at most this often as wide: marks grow with the root of the zoom, so that those that stood on each other come apart. */
const MANY = 1500;
/** More memories than this are drawn smaller, */
const SMALLER = 0.55;
/** by this. */
const CROWD = 150;
/** More memories than this lie on each other: their marks let through what is below them. */
const TRANSLUCENT = 0.68;
const FAINT = 0.3;
/** Opacities, also of those that are not shown. */
const RING = 7;
const FONT_SIZE = 12;
const ABOVE = 15;
/** Pixels from a mark to the label above it. */

const SHAPES: readonly SymbolType[] = [...symbolsFill, symbolDiamond2];

/** Each cluster's colour and shape, either of which is enough to tell it from the others. */
export function markOf(cluster: number) {
  const place = cluster % SHAPES.length;
  return { colour: `--series-${place}`, shape: SHAPES[place] as SymbolType };
}

export function paint(canvas: HTMLCanvasElement, scene: Scene): void {
  const { size, transform, faint, shown, chosen, current, labels, region } = scene;
  const context = canvas.getContext("2d");
  if (!context || size.width === 0 || size.height === 0) return;
  clear(context, size);
  const colour = (name: string) => colourOf(canvas, name, scene.scheme);
  const growth = Math.min(LARGEST, Math.sqrt(transform.k)) * (shown.length > MANY ? SMALLER : 1);
  const draw = (dots: readonly Dot[], area: number, edge: string, fill?: string) => {
    const paths = SHAPES.map((shape) => new Path2D(symbol(shape, area * growth ** 2)() ?? ""));
    context.strokeStyle = colour(edge);
    for (const dot of dots) {
      const [x, y] = transform.apply([dot.x, dot.y]);
      const path = paths[dot.node.cluster % paths.length] as Path2D;
      context.fillStyle = colour(fill ?? markOf(dot.node.cluster).colour);
      context.translate(x, y);
      context.fill(path);
      context.stroke(path);
      context.translate(-x, -y);
    }
  };
  context.lineJoin = "round";
  context.lineWidth = 0.7;
  context.globalAlpha = FAINT;
  draw(faint, AREA / 4, "--surface", "--muted");
  context.globalAlpha = shown.length > CROWD ? TRANSLUCENT : 1;
  draw(shown, AREA, "--surface");
  context.globalAlpha = 1;
  context.lineWidth = 1.4;
  draw(
    shown.filter(({ node }) => chosen.has(node.id)),
    AREA * CHOSEN,
    "--text",
  );
  if (current) {
    context.beginPath();
    context.arc(...transform.apply([current.x, current.y]), RING * Math.max(1, growth), 0, 2 * Math.PI);
    context.strokeStyle = colour("--text");
    context.stroke();
  }
  context.font = `600 ${FONT_SIZE}px ${getComputedStyle(canvas).fontFamily}`;
  context.fillStyle = colour("--text");
  context.strokeStyle = colour("--surface");
  drawLabels(context, labels, size, transform);
  if (region) {
    const [[left, top], [right, bottom]] = region;
    context.lineWidth = 1.2;
    context.strokeStyle = colour("--accent");
    context.strokeRect(left, top, right - left, bottom - top);
    context.globalAlpha = 0.12;
    context.fillStyle = colour("--accent");
    context.fillRect(left, top, right - left, bottom - top);
  }
}

/** Gives the canvas the size of its element, in the pixels of the screen, with nothing on it. */
function clear(context: CanvasRenderingContext2D, { width, height }: Size): void {
  const { canvas } = context;
  const ratio = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
}

/** Draws the labels; if two overlap, only that of the larger cluster. */
function drawLabels(context: CanvasRenderingContext2D, labels: readonly Label[], size: Size, transform: ZoomTransform): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 4;
  const taken: { readonly x: number; readonly y: number; readonly half: number }[] = [];
  for (const label of labels) {
    const half = context.measureText(label.text).width / 2 + FONT_SIZE / 2;
    const place = inside(transform.apply([label.x, label.y]), half, size);
    if (!place) continue;
    const [x, y] = place;
    if (taken.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < FONT_SIZE * 1.5)) continue;
    taken.push({ x, y, half });
    context.strokeText(label.text, x, y);
    context.fillText(label.text, x, y);
  }
}

/** The middle of a label above its mark, moved so far that the whole label is on the map; none for a mark that is not. */
function inside([x, y]: Place, half: number, { width, height }: Size): Place | null {
  if (x < 0 || y < 0 || x > width || y > height) return null;
  return [Math.max(half, Math.min(width - half, x)), Math.max(FONT_SIZE, y - ABOVE)];
}

const colours = new Map<string, string>();

/** A variable of the style sheet as a canvas takes it: it knows neither variables nor light-dark(). */
function colourOf(canvas: HTMLCanvasElement, name: string, scheme: string): string {
  const known = colours.get(`${scheme} ${name}`);
  if (known) return known;
  canvas.style.color = `var(${name})`;
  const { color } = getComputedStyle(canvas);
  canvas.style.removeProperty("color");
  colours.set(`${scheme} ${name}`, color);
  return color;
}
