import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { App } from "../App";
import { draw, serve } from "../testing";

afterEach(cleanup);

const RUN = {
  run_id: "run-1",
  task: "Tea",
  task_type: "report",
  agent: null,
  verdict: "",
  final_score: null,
  issues: [],
  tokens: null,
  cost: null,
  started_at: null,
  finished_at: null,
  created_at: "2026-11-20T10:00:00Z",
};

const VERSION = { version: "v1", runs: [], score: null, verdict: "", summary: "", judged_at: null };

it.each([
  ["/runs?sort=biggest", "There is no sort “biggest”: the latest first are shown."],
  ["/memory?sort=size&min_score=4", "There is no sort “size”: the newest first are shown."],
  ["/memory?order=sideways", "There is no order “sideways”: the newest first are shown."],
  ["/memory?sort=occurred&order=asc", "There is no order “asc”: the newest first are shown."],
  ["/cases?workspace=north&colour=red&case=tea", "Ignored, as the place does not know it: colour."],
  ["/cases?case=tea&one=v1&other=v9", "There is no version “v9”: a latest one is shown."],
  ["/runs?memory=m1", "Ignored, as the place does not know it: memory."],
])("%s names what means nothing, and leads back", async (href, said) => {
  serve({
    "GET /api/runs": { runs: [RUN], total: 1, next: null },
    "GET /api/memories": { memories: [], total: 0, next: null },
    "GET /api/cases": [],
    "GET /api/cases/tea": { case: "tea", title: "Tea", issues: [], versions: [VERSION, { ...VERSION, version: "v2" }] },
  });
  draw(<App />, href);
  const found = await screen.findByText(said, { exact: false });
  expect(document.querySelectorAll(".problem.kept")).toHaveLength(1);
  fireEvent.click(screen.getByRole("link", { name: "Take it out of the address" }));
  expect(found.isConnected).toBe(false);
  expect(window.location.search).not.toMatch(/sort=(big|size)|order|colour|memory|v9/);
});

it("says nothing of what the place knows", async () => {
  serve({ "GET /api/cases": [] });
  draw(<App />, "/cases?workspace=north&case=tea&q=tea");
  await screen.findByRole("heading", { name: "Cases" });
  expect(document.querySelector(".problem.kept")).toBeNull();
});
