/** The runs that the address asks for, in its order. */

import type { RunSummary } from "../../api/schema";

/** The filters by one of the values that the runs have. */
export const VALUED = [
  { name: "task_type", label: "Task type" },
  { name: "verdict", label: "Verdict" },
  { name: "agent", label: "Agent" },
] as const;

/** The orders, each by a number; the largest comes first, and runs without one last. */
export const SORTS: readonly { readonly name: string; readonly label: string; readonly of: (run: RunSummary) => number | null }[] = [
  { name: "", label: "Latest first", of: (run) => Date.parse(whenOf(run)) },
  { name: "best", label: "Best score first", of: ({ final_score: score }) => score },
  { name: "worst", label: "Worst score first", of: ({ final_score: score }) => score && -score },
  { name: "tokens", label: "Most tokens first", of: ({ tokens }) => tokens },
  { name: "cost", label: "Costliest first", of: ({ cost }) => cost },
];

/** The moment of a run in the list. */
export function whenOf(run: RunSummary): string {
  return run.finished_at ?? run.started_at ?? run.created_at;
}

/** The time that a run took, in milliseconds; null where its start or end is not known. */
export function durationOf({ started_at, finished_at }: Pick<RunSummary, "started_at" | "finished_at">): number | null {
  return started_at && finished_at ? Date.parse(finished_at) - Date.parse(started_at) : null;
}

/** The runs that have all words and values that the address names, in its order; one whose whole name it is comes first. */
export function narrowed(runs: readonly RunSummary[], params: URLSearchParams): readonly RunSummary[] {
  const words = (params.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const { of } = SORTS.find(({ name }) => name === params.get("sort")) ?? (SORTS[0] as (typeof SORTS)[number]);
  const value = (run: RunSummary) => (run.run_id === params.get("q")?.trim() ? Infinity : (of(run) ?? Number.MIN_SAFE_INTEGER));
  return runs
    .filter((run) => VALUED.every(({ name }) => !params.get(name) || run[name] === params.get(name)) && contains(run, words))
    .sort((one, other) => value(other) - value(one));
}

function contains({ run_id, task, task_type, agent, issues }: RunSummary, words: readonly string[]): boolean {
  const whole = [run_id, task, task_type, agent ?? "", ...issues].join("\n").toLowerCase();
  return words.every((word) => whole.includes(word));
}

/** True if the address asks for some runs alone. */
export function isNarrowed(params: URLSearchParams): boolean {
  return ["q", ...VALUED.map(({ name }) => name)].some((name) => params.get(name));
}
