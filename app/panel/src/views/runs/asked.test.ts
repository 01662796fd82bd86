import { describe, expect, it } from "vitest";
import type { RunSummary } from "../../api/schema";
import { narrowed, readAsked } from "./asked";

function run(run_id: string, given: Partial<RunSummary>): RunSummary {
  const nothing = { task: "", task_type: "", agent: null, verdict: "", final_score: null, tokens: null, cost: null, issues: [] };
  const moments = { started_at: null, finished_at: null, created_at: "2026-11-01T00:00:00Z" };
  return { run_id, ...nothing, ...moments, round_scores: [], ...given } as RunSummary;
}

const RUNS = [
  run("a", { final_score: 5, task: "Scout the market", agent: "scout" }),
  run("b", { final_score: null, task_type: "research" }),
  run("c", { final_score: 9, issues: ["No source for the market"] }),
];
const ids = (query: string) => narrowed(RUNS, readAsked(new URLSearchParams(query))).map(({ run_id }) => run_id);

describe("the table of runs", () => {
  it("orders by a column, with runs that have no value last either way", () => {
    expect(ids("sort=score")).toEqual(["c", "a", "b"]);
    expect(ids("sort=score&order=asc")).toEqual(["a", "c", "b"]);
  });

  it("finds every word in the task, the id or an issue", () => {
    expect(ids("q=MARKET source")).toEqual(["c"]);
    expect(ids("q=market").sort()).toEqual(["a", "c"]);
    expect(ids("agent=scout")).toEqual(["a"]);
  });

  it("takes the usual order for a column that there is not", () => {
    expect(readAsked(new URLSearchParams("sort=colour&order=up"))).toMatchObject({ sort: "when", order: "desc" });
  });
});
