/** Draws the map on a canvas: each mark is drawn once as a picture, all marks once as a layer, and then only copied. */

import { symbol, symbolCircle } from "d3-shape";
import type { ZoomTransform } from "d3-zoom";
import { dashesOf, FAINT, type Mark } from "./marks";
import type { Dot, Label, Line, Place, Size } from "./scene";

export interface Drawn {
  readonly dot: Dot;
  readonly mark: Mark;
}

export interface Scene {
  readonly size: Size;
  /** Memories that are drawn below all others and cannot be pointed at. */
  readonly faint: readonly Dot[];
  readonly shown: readonly Drawn[];
  readonly chosen: ReadonlySet<string>;
  readonly current: Dot | undefined;
  readonly lines: readonly Line[];
  readonly labels: readonly Label[];
  readonly region: readonly Place[];
}

/** The state in which a mark is drawn. */
interface Look {
  readonly chosen: boolean;
  readonly growth: number;
  readonly alpha: number;
}

const MANY = 1500;
/** More memories than this are drawn smaller, */
const SMALLER = 0.55;
/** by this. */
const GROWTH = 0.5;
/** Marks grow with the root of the zoom, so that those that stood on each other come apart. */
const LARGEST = 2.6;
const MARGIN = 0.25;
/** The layer's width beyond each edge of the view, as a share of its size, so that the map moves without drawing. */
const STRETCH = 1.3;
/** Largest factor by which a layer is stretched or shrunk while the map is zoomed; at rest it is drawn at its own size. */
const CROWD = 150;
/** More memories than this lie on each other: their marks let through what is below them. */
const TRANSLUCENT = 0.68;
const RING = 7;
const FONT_SIZE = 12;
const ABOVE = 15;
/** Pixels from a mark to the label above it. */

/** Returns the factor by which marks are larger than usual; in steps, so that their pictures can be kept. */
function grown(zoom: number, shown: number): number {
  const growth = Math.min(LARGEST, zoom ** GROWTH) * (shown > MANY ? SMALLER : 1);
  return Math.round(growth * 8) / 8;
}

/** The middle of a label above its mark, moved so far that the whole label is on the map; none for a mark that is not. */
function inside([x, y]: Place, half: number, { width, height }: Size): Place | null {
  if (x < 0 || y < 0 || x > width || y > height) return null;
  return [Math.max(half, Math.min(width - half, x)), Math.max(FONT_SIZE, y - ABOVE)];
}

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser does not provide a canvas");
  return context;
}

/** Setting a canvas's size clears it, so only another size is set. */
function resized(canvas: HTMLCanvasElement, width: number, height: number): void {
  const [across, down] = [Math.round(width), Math.round(height)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
}

function sameMarks(one: Scene, other: Scene): boolean {
  return (
    one.shown === other.shown &&
    one.faint === other.faint &&
    one.chosen === other.chosen &&
    one.size.width === other.size.width &&
    one.size.height === other.size.height
  );
}

/** The scene on the layer, and the position of the map in it. */
interface Layered {
  readonly scene: Scene;
  readonly transform: ZoomTransform;
}

export class Painter {
  readonly #context: CanvasRenderingContext2D;
  readonly #layer = document.createElement("canvas");
  #layered: Layered | null = null;
  readonly #pictures = new Map<string, HTMLCanvasElement>();
  readonly #colours = new Map<string, string>();
  #ratio = 1;
  #font = "";

  constructor(readonly canvas: HTMLCanvasElement) {
    this.#context = contextOf(canvas);
  }

  /** Colours have changed: nothing that was drawn with them is kept. */
  forget(): void {
    this.#layered = null;
    this.#pictures.clear();
    this.#colours.clear();
    this.#font = "";
  }

  /** A map that is `moving` may be stretched a little; the next one at rest is drawn anew. Without a size there is none. */
  paint(scene: Scene, transform: ZoomTransform, moving: boolean): void {
    if (scene.size.width === 0 || scene.size.height === 0) return;
    this.#fit(scene.size);
    if (!this.#covered(scene, transform, moving)) this.#drawLayer(scene, transform);
    const context = this.#context;
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.clearRect(0, 0, scene.size.width, scene.size.height);
    this.#lines(scene.lines, transform);
    const [x, y, width, height] = this.#stretched(transform);
    context.drawImage(this.#layer, x, y, width, height);
    this.#labels(scene.labels, scene.size, transform);
    if (scene.current) this.#ring(scene.current, grown(transform.k, scene.shown.length), transform);
    this.#region(scene.region);
  }

  #fit({ width, height }: Size): void {
    const ratio = window.devicePixelRatio || 1;
    if (ratio !== this.#ratio) this.forget();
    this.#ratio = ratio;
    resized(this.canvas, width * ratio, height * ratio);
  }

  /** Returns the layer's place on the canvas: x, y, width, height. */
  #stretched(transform: ZoomTransform): readonly [number, number, number, number] {
    const { size } = (this.#layered as Layered).scene;
    const drawn = (this.#layered as Layered).transform;
    const stretch = transform.k / drawn.k;
    return [
      transform.x - stretch * (drawn.x + MARGIN * size.width),
      transform.y - stretch * (drawn.y + MARGIN * size.height),
      stretch * (1 + 2 * MARGIN) * size.width,
      stretch * (1 + 2 * MARGIN) * size.height,
    ];
  }

  #covered(scene: Scene, transform: ZoomTransform, moving: boolean): boolean {
    if (!this.#layered || !sameMarks(this.#layered.scene, scene)) return false;
    const stretch = transform.k / this.#layered.transform.k;
    if (stretch !== 1 && (!moving || stretch > STRETCH || stretch < 1 / STRETCH)) return false;
    const [x, y, width, height] = this.#stretched(transform);
    return x <= 0 && y <= 0 && x + width >= scene.size.width && y + height >= scene.size.height;
  }

  #drawLayer(scene: Scene, transform: ZoomTransform): void {
    this.#layered = { scene, transform };
    const { width, height } = scene.size;
    resized(this.#layer, width * (1 + 2 * MARGIN) * this.#ratio, height * (1 + 2 * MARGIN) * this.#ratio);
    const context = contextOf(this.#layer);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#layer.width, this.#layer.height);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, MARGIN * width * this.#ratio, MARGIN * height * this.#ratio);
    const look = { chosen: false, growth: grown(transform.k, scene.shown.length), alpha: scene.shown.length > CROWD ? TRANSLUCENT : 1 };
    for (const dot of scene.faint) this.#copy(context, dot, FAINT, look, scene.size, transform);
    for (const { dot, mark } of scene.shown) {
      if (!scene.chosen.has(dot.node.id)) this.#copy(context, dot, mark, look, scene.size, transform);
    }
    for (const { dot, mark } of scene.shown) {
      if (scene.chosen.has(dot.node.id)) this.#copy(context, dot, mark, { ...look, chosen: true, alpha: 1 }, scene.size, transform);
    }
  }

  #copy(context: CanvasRenderingContext2D, dot: Dot, mark: Mark, look: Look, size: Size, transform: ZoomTransform): void {
    const x = transform.applyX(dot.x);
    const y = transform.applyY(dot.y);
    const [beyondX, beyondY] = [MARGIN * size.width + RING, MARGIN * size.height + RING];
    if (x < -beyondX || y < -beyondY || x > size.width + beyondX || y > size.height + beyondY) return;
    const picture = this.#picture(mark, look);
    const side = picture.width / this.#ratio;
    context.drawImage(picture, x - side / 2, y - side / 2, side, side);
  }

  #picture(mark: Mark, { chosen, growth, alpha }: Look): HTMLCanvasElement {
    const area = Math.max(4, Math.round(mark.area * growth * growth * (chosen ? 1.7 : 1)));
    const name = `${mark.name} ${chosen} ${area} ${alpha}`;
    const known = this.#pictures.get(name);
    if (known) return known;
    const made = this.#draw(mark, chosen, area, alpha);
    this.#pictures.set(name, made);
    return made;
  }

  #draw(mark: Mark, chosen: boolean, area: number, alpha: number): HTMLCanvasElement {
    const picture = document.createElement("canvas");
    const side = Math.ceil((Math.sqrt(area) * 2 + 4) * this.#ratio);
    picture.width = picture.height = side;
    const context = contextOf(picture);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, side / 2, side / 2);
    context.globalAlpha = mark.opacity * alpha;
    context.fillStyle = this.#colour(mark.colour);
    context.strokeStyle = this.#colour(chosen ? "--text" : "--surface");
    context.lineWidth = chosen ? 1.2 : 0.7;
    context.lineJoin = "round";
    context.beginPath();
    symbol(mark.shape, area).context(context)();
    context.fill();
    context.stroke();
    return picture;
  }

  #lines(lines: readonly Line[], transform: ZoomTransform): void {
    const context = this.#context;
    context.strokeStyle = this.#colour("--accent");
    context.lineWidth = 1.5;
    for (const { from, to, relation } of lines) {
      context.setLineDash([...dashesOf(relation)]);
      context.beginPath();
      context.moveTo(transform.applyX(from.x), transform.applyY(from.y));
      context.lineTo(transform.applyX(to.x), transform.applyY(to.y));
      context.stroke();
    }
    context.setLineDash([]);
  }

  #ring(dot: Dot, growth: number, transform: ZoomTransform): void {
    const context = this.#context;
    context.save();
    context.translate(transform.applyX(dot.x), transform.applyY(dot.y));
    context.strokeStyle = this.#colour("--text");
    context.lineWidth = 1.6;
    context.beginPath();
    symbol(symbolCircle, Math.PI * (RING * Math.max(1, growth)) ** 2).context(context)();
    context.stroke();
    context.restore();
  }

  /** Draws the labels; if two overlap, only that of the larger cluster. */
  #labels(labels: readonly Label[], size: Size, transform: ZoomTransform): void {
    const context = this.#context;
    this.#font ||= `600 ${FONT_SIZE}px ${getComputedStyle(this.canvas).fontFamily}`;
    context.font = this.#font;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = this.#colour("--surface");
    context.fillStyle = this.#colour("--text");
    const taken: { readonly x: number; readonly y: number; readonly half: number }[] = [];
    for (const label of labels) {
      const half = context.measureText(label.text).width / 2 + FONT_SIZE / 2;
      const place = inside([transform.applyX(label.x), transform.applyY(label.y)], half, size);
      if (!place) continue;
      const [x, y] = place;
      if (taken.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < FONT_SIZE * 1.5)) continue;
      taken.push({ x, y, half });
      context.strokeText(label.text, x, y);
      context.fillText(label.text, x, y);
    }
  }

  #region(region: readonly Place[]): void {
    const [first, ...rest] = region;
    if (!first || rest.length === 0) return;
    const context = this.#context;
    context.beginPath();
    context.moveTo(...first);
    for (const place of rest) context.lineTo(...place);
    context.closePath();
    context.strokeStyle = context.fillStyle = this.#colour("--accent");
    context.globalAlpha = 0.12;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.2;
    context.setLineDash([4, 3]);
    context.stroke();
    context.setLineDash([]);
  }

  /** A variable of the style sheet as a canvas takes it: it knows neither variables nor light-dark(). */
  #colour(name: string): string {
    const known = this.#colours.get(name);
    if (known) return known;
    this.canvas.style.color = `var(${name})`;
    const { color } = getComputedStyle(this.canvas);
    this.canvas.style.removeProperty("color");
    this.#colours.set(name, color);
    return color;
  }
}
