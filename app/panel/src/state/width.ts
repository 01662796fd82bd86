import { useEffect, useRef, useState } from "react";

/** The size of an element in whole pixels, as it changes; the function is its `ref`. */
export function useSize() {
  const [size, setSize] = useState({ width: 0, height: 0 });
  const watching = useRef<ResizeObserver | null>(null);
  useEffect(() => () => watching.current?.disconnect(), []);
  const frame = useRef((element: HTMLElement | null) => {
    watching.current?.disconnect();
    if (!element) return;
    watching.current = new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      setSize({ width: Math.floor(width), height: Math.floor(height) });
    });
    watching.current.observe(element);
  });
  return [size, frame.current] as const;
}
