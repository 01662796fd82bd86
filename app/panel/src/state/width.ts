import { useEffect, useRef, useState } from "react";

/** The width of an element in whole pixels, as it changes; the function is its `ref`. */
export function useWidth(): readonly [number, (element: HTMLElement | null) => void] {
  const [width, setWidth] = useState(0);
  const watching = useRef<ResizeObserver | null>(null);
  useEffect(() => () => watching.current?.disconnect(), []);
  const frame = useRef((element: HTMLElement | null) => {
    watching.current?.disconnect();
    if (!element) return;
    watching.current = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    watching.current.observe(element);
  });
  return [width, frame.current];
}
