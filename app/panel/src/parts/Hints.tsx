import { useEffect, useState } from "react";

interface Hint {
  readonly text: string;
  readonly left: number;
  readonly top: number;
}

const HELD_MILLISECONDS = 450;
/** A finger that stays this long on something with a title sees the title, as a mouse does. */
const MOVED = 10;
/** Pixels that a finger may move meanwhile. */
const WIDTH = 280;
const EDGE = 8;
const INTERACTIVE = "a, button, input, select, textarea, label, summary";

function hintOf(element: Element): Hint {
  const { left, bottom } = element.getBoundingClientRect();
  return {
    text: element.getAttribute("title") ?? "",
    left: Math.max(EDGE, Math.min(left, window.innerWidth - WIDTH - EDGE)),
    top: Math.min(bottom + EDGE, window.innerHeight - 80),
  };
}

function titled(event: Event): Element | null {
  return event.target instanceof Element ? event.target.closest("[title]") : null;
}

/** Shows titles to those who touch: on a tap where nothing else happens, else when the finger stays. */
export function Hints() {
  const [hint, setHint] = useState<Hint | null>(null);
  useEffect(() => {
    let timer = 0;
    let shown = false;
    let start = { x: 0, y: 0 };
    const show = (element: Element) => {
      shown = true;
      setHint(hintOf(element));
    };
    const stop = () => window.clearTimeout(timer);
    const pressed = (event: PointerEvent) => {
      stop();
      shown = false;
      setHint(null);
      const element = titled(event);
      if (event.pointerType !== "touch" || !element) return;
      start = { x: event.clientX, y: event.clientY };
      timer = window.setTimeout(() => show(element), HELD_MILLISECONDS);
    };
    const moved = (event: PointerEvent) => {
      if (Math.hypot(event.clientX - start.x, event.clientY - start.y) > MOVED) stop();
    };
    const released = (event: PointerEvent) => {
      stop();
      const element = titled(event);
      if (event.pointerType === "touch" && element && !element.closest(INTERACTIVE)) show(element);
    };
    // A held finger would also open the browser's own menu, and lifting it would press what it is on.
    const instead = (event: Event) => {
      if (!shown) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.type === "click") shown = false;
    };
    const dismissed = () => {
      shown = false;
      setHint(null);
    };
    const listeners = new AbortController();
    const { signal } = listeners;
    document.addEventListener("pointerdown", pressed, { signal });
    document.addEventListener("pointermove", moved, { signal });
    document.addEventListener("pointerup", released, { signal });
    document.addEventListener("pointercancel", stop, { signal });
    document.addEventListener("keydown", dismissed, { signal });
    document.addEventListener("scroll", dismissed, { signal, capture: true });
    document.addEventListener("contextmenu", instead, { signal, capture: true });
    document.addEventListener("click", instead, { signal, capture: true });
    return () => {
      stop();
      listeners.abort();
    };
  }, []);
  if (!hint) return null;
  return (
    <p className="hint" role="tooltip" style={{ left: hint.left, top: hint.top }}>
      {hint.text}
    </p>
  );
}
