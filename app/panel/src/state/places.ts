/** The five places, each with the letter that leads to it after `g`. */

export const PLACES = [
  { path: "/", name: "Desk", icon: "review", key: "d" },
  { path: "/cases", name: "Cases", icon: "flag", key: "c" },
  { path: "/runs", name: "Runs", icon: "runs", key: "r" },
  { path: "/memory", name: "Memory", icon: "memories", key: "m" },
  { path: "/service", name: "Service", icon: "status", key: "s" },
] as const;

/** What `g` and a letter lead to: the places, and the log of changes. */
export const CHORDS: readonly {
  readonly path: string;
  readonly name: string;
  readonly key: string;
  readonly params?: Readonly<Record<string, string>>;
}[] = [...PLACES, { path: "/service", name: "the audit log", key: "a", params: { part: "audit" } }];
