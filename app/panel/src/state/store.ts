import { useSyncExternalStore } from "react";

interface Store<T> {
  readonly get: () => T;
  readonly set: (value: T) => void;
  readonly use: () => T;
}

/** A value that belongs to no component; those that use it follow it. */
export function storeOf<T>(initial: T): Store<T> {
  const listeners = new Set<() => void>();
  let current = initial;
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const set = (value: T) => {
    current = value;
    for (const listener of listeners) listener();
  };
  const get = () => current;
  return { get, set, use: () => useSyncExternalStore(subscribe, get) };
}
