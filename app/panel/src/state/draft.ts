/** What somebody has written and not sent: it survives Escape, another place, and a reload of the tab. */

import { useState } from "react";

const PREFIX = "priors-written ";

type Draft<T> = readonly [value: T, set: (value: T) => void, forget: () => void];

/** A draft by its name, with what stands there before anybody writes. Who sends it forgets it. */
export function useDraft<T>(name: string, otherwise: T): Draft<T> {
  const key = PREFIX + name;
  const [written, setWritten] = useState({ key: "", value: otherwise });
  const forget = () => window.sessionStorage.removeItem(key);
  const set = (value: T) => {
    setWritten({ key, value });
    const text = JSON.stringify(value);
    if (text === JSON.stringify(otherwise)) forget();
    else window.sessionStorage.setItem(key, text);
  };
  return [written.key === key ? written.value : read(key, otherwise), set, forget];
}

function read<T>(key: string, otherwise: T): T {
  const stored = window.sessionStorage.getItem(key);
  return stored === null ? otherwise : (JSON.parse(stored) as T);
}
