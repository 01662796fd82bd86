import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../api/schema";
import { narrowed } from "./asked";

function run(run_id: string, given: Partial<RunSummary>): RunSummary {
  const nothing = { task: "", task_type: "", agent: null, verdict: "", final_score: null, tokens: null, cost: null, issues: [] };
  const moments = { started_at: null, finished_at: null, created_at: "2026-11-01T00:00:00Z" };
  return { run_id, ...nothing, ...moments, round_scores: [], ...given } as RunSummary;
}

const RUNS = [
  run("a", { final_score: 5, task: "Scout the market", agent: "scout" }),
  run("b", { final_score: null, task_type: "research", finished_at: "2026-11-02T00:00:00Z" }),
  run("c", { final_score: 9, issues: ["No source for the market"] }),
];
const ids = (query: string) => narrowed(RUNS, new URLSearchParams(query)).map(({ run_id }) => run_id);

describe("the list of runs", () => {
  it("has an order, with runs that have no value last either way", () => {
    expect(ids("sort=best")).toEqual(["c", "a", "b"]);
    expect(ids("sort=worst")).toEqual(["a", "c", "b"]);
  });

  it("finds every word in the task, the id or an issue", () => {
    expect(ids("q=MARKET source")).toEqual(["c"]);
    expect(ids("q=market").sort()).toEqual(["a", "c"]);
    expect(ids("agent=scout")).toEqual(["a"]);
  });

  it("begins with the run whose whole name is searched for", () => {
    expect(ids("q=c")).toEqual(["c", "b", "a"]);
  });

  it("begins with the latest, also for an order that there is not", () => {
    expect(ids("sort=colour")).toEqual(["b", "a", "c"]);
  });
});
