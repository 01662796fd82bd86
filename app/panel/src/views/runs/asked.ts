/** The runs that the address asks for, in its order. */

import type { RunSummary } from "../../api/schema";

/** The filters by one of the values that the runs have. */
export const VALUED = ["task_type", "verdict", "agent"] as const;
export const NAMES = { task_type: "Task type", verdict: "Verdict", agent: "Agent" } as const;
type Filter = (typeof VALUED)[number];
export type Filters = Readonly<Record<Filter | "text", string>>;

export const COLUMNS = [
  { name: "task", label: "Run", first: "asc" },
  { name: "agent", label: "Agent", first: "asc" },
  { name: "when", label: "Date", first: "desc" },
  { name: "duration", label: "Duration", first: "desc" },
  { name: "tokens", label: "Tokens", first: "desc" },
  { name: "cost", label: "Cost", first: "desc" },
  { name: "score", label: "Score", first: "desc" },
  { name: "verdict", label: "Verdict", first: "asc" },
] as const;
export type Column = (typeof COLUMNS)[number]["name"];
type Direction = "asc" | "desc";

export interface Asked {
  readonly filters: Filters;
  readonly sort: Column;
  readonly order: Direction;
  readonly open: string | null;
}

export function readAsked(params: URLSearchParams): Asked {
  const column = COLUMNS.find(({ name }) => name === params.get("sort"));
  const order = params.get("order");
  const value = (name: string) => params.get(name) ?? "";
  return {
    filters: { text: value("q"), task_type: value("task_type"), verdict: value("verdict"), agent: value("agent") },
    sort: column?.name ?? "when",
    order: order === "asc" || order === "desc" ? order : (column?.first ?? "desc"),
    open: params.get("run"),
  };
}

/** The moment of a run in the list and the plot. */
export function whenOf(run: RunSummary): string {
  return run.finished_at ?? run.started_at ?? run.created_at;
}

/** The time that a run took, in milliseconds; null where its start or end is not known. */
export function durationOf({ started_at, finished_at }: Pick<RunSummary, "started_at" | "finished_at">): number | null {
  return started_at && finished_at ? Date.parse(finished_at) - Date.parse(started_at) : null;
}

const VALUES: Readonly<Record<Column, (run: RunSummary) => string | number | null>> = {
  task: (run) => (run.task || run.run_id).toLowerCase(),
  agent: (run) => run.agent,
  when: (run) => whenOf(run),
  duration: durationOf,
  tokens: (run) => run.tokens,
  cost: (run) => run.cost,
  score: (run) => run.final_score,
  verdict: (run) => run.verdict || null,
};

/** The runs that match, in order; runs without a value come last. */
export function narrowed(runs: readonly RunSummary[], { filters, sort, order }: Asked): readonly RunSummary[] {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = runs.filter(
    (run) => VALUED.every((name) => filters[name] === "" || run[name] === filters[name]) && contains(run, words),
  );
  const value = VALUES[sort];
  const sign = order === "asc" ? 1 : -1;
  return [...matching].sort((one, other) => {
    const [first, second] = [value(one), value(other)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return first < second ? -sign : first > second ? sign : 0;
  });
}

function contains({ run_id, task, task_type, agent, issues }: RunSummary, words: readonly string[]): boolean {
  const whole = [run_id, task, task_type, agent ?? "", ...issues].join("\n").toLowerCase();
  return words.every((word) => whole.includes(word));
}

/** The values of a filter among runs, with the chosen one, in alphabetical order. */
export function valuesOf(runs: readonly RunSummary[], name: Filter, chosen: string): readonly string[] {
  return [...new Set([...runs.map((run) => run[name]), chosen])].filter((value): value is string => Boolean(value)).sort();
}

export function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}
