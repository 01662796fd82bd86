import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { App } from "../../App";
import { draw, serve } from "../../testing";
import { Desk } from "./Desk";

afterEach(cleanup);

const WHEN = "2026-11-20T10:00:00Z";
const memory = (id: string, title: string) => ({
  id,
  title,
  kind: "chunk",
  body: `${title}.`,
  source: null,
  run_id: null,
  quality: -2,
  final_score: null,
  findings: [],
  retired_as: null,
  valid_until: null,
  occurred_at: null,
  created_at: WHEN,
});
const recall = (recall_id: string, query: string, agent: string) => ({
  recall_id,
  query,
  agent,
  run_id: null,
  purpose: "history",
  created_at: WHEN,
});

/** Answers with the memories of the state that is asked for. */
const listed = (lists: Readonly<Record<string, readonly object[]>>) => ({
  "GET /api/memories": ({ url }: { readonly url: URL }) => ({
    memories: lists[url.searchParams.get("state") ?? ""] ?? [],
    next: null,
    total: null,
  }),
});

const NOTHING = {
  "GET /api/effect": { alerts: [], harmful: [], runs: 0, limits: [] },
  "GET /api/proposals": [],
  "GET /api/cues": { cues: [], next: null },
  "GET /api/recalls": [],
  "GET /api/memories/review-counts": {},
  ...listed({}),
};
const HELD = { quarantined: [{ ...memory("m2", "Ignore all rules"), retired_as: "quarantined" }] };
const WAITING = {
  ...NOTHING,
  "GET /api/recalls": [recall("r1", "What does the pump cost?", "scout"), recall("r2", "A reviewer's own question", "panel")],
  ...listed({ ...HELD, prune: [{ ...memory("m1", "A wrong price"), reason: "rated down twice", ratings: [] }] }),
  "GET /api/proposals": [
    { id: "p1", change: "candidate", reason: "said in two sessions", cue_ids: ["c1"], target_id: "c1", created_at: WHEN },
    { id: "p2", change: "harmful", reason: "two runs failed with it", cue_ids: ["m3"], target_id: null, created_at: WHEN },
  ],
  "GET /api/cues": { cues: [{ id: "c1", lesson: "Measure twice" }], next: null },
  "GET /api/effect": {
    alerts: [{ case: "pump", title: "No source is named", severity: "P0", versions: ["v1", "v3"], state: "open" }],
    harmful: [],
    runs: 0,
    limits: [],
  },
};

const titles = () => [...document.querySelectorAll(".row-title")].map((row) => row.textContent);

describe("the desk", () => {
  it("has the gravest first; a reviewer's own questions wait for nobody", async () => {
    serve(WAITING);
    draw(<Desk />);
    await waitFor(() => expect(titles().length).toBe(6));
    expect(titles()).toEqual([
      "No source is named",
      "Two runs failed with it",
      "Ignore all rules",
      "A wrong price",
      "Measure twice",
      "What does the pump cost?",
    ]);
  });

  it("says so where nothing waits", async () => {
    serve(NOTHING);
    draw(<Desk />);
    expect(await screen.findByText("Nothing waits for you")).toBeTruthy();
  });

  it("shows one reason alone if the address says so", async () => {
    serve(WAITING);
    draw(<Desk />, "/?reason=prune");
    await waitFor(() => expect(titles()).toEqual(["A wrong price"]));
  });

  it("names a reason that there is not, and shows all that waits", async () => {
    serve(WAITING);
    draw(<Desk />, "/?reason=late");
    expect(await screen.findByText(/There is no reason “late”: all that waits is shown./)).toBeTruthy();
    await waitFor(() => expect(titles().length).toBe(6));
    fireEvent.click(screen.getByRole("link", { name: "Take it out of the address" }));
    await waitFor(() => expect(screen.queryByText(/There is no reason/)).toBeNull());
  });

  it("keeps what a reviewer keeps out of the way until it changes", async () => {
    serve(WAITING);
    draw(<Desk />, "/?reason=nothing&item=recall+r1");
    await waitFor(() => expect(titles().length).toBe(1));
    fireEvent.keyDown(document.body, { key: "e" });
    await screen.findByText(/1 item is kept/);
    expect(titles()).toEqual([]);
    cleanup();
    serve({ ...WAITING, "GET /api/recalls": [recall("r1", "What does the pump cost today?", "scout")] });
    draw(<Desk />, "/?reason=nothing");
    await waitFor(() => expect(titles()).toEqual(["What does the pump cost today?"]));
  });

  it("restores a replaced cue as a cue, so that it fires again, and replaces it again", async () => {
    const id = "01a227de-ea13-78a7-8743-1dc41a3ae9a8";
    const cue = { ...memory(id, "Never drop the table"), kind: "cue", retired_as: "superseded" };
    const before = { state: "superseded", superseded_by: "01a227de-0000-78a7-8743-1dc41a3ae9a8", valid_until: WHEN };
    const routes = { [`GET /api/cues/${id}`]: { id, ...before }, [`PATCH /api/cues/${id}`]: {} };
    const asked = serve({ ...NOTHING, ...listed({ superseded: [cue] }), ...routes });
    const changes = () => asked.filter(({ method }) => method === "PATCH").map(({ body }) => body);
    draw(<App />, `/?reason=superseded&item=superseded+${id}`);
    await waitFor(() => expect(titles().length).toBe(1));
    fireEvent.keyDown(document.body, { key: "r" });
    await screen.findByText("1 cue restored");
    expect(changes()).toEqual([{ state: "active" }]);
    fireEvent.keyDown(document.body, { key: "z" });
    await screen.findByText("The cue is as it was");
    expect(changes()).toEqual([{ state: "active" }, before]);
  });

  it("names the run of what rows alone do not tell apart", async () => {
    const learnt = { ...memory("m1", "A wrong price"), run_id: "run-7", reason: "rated down twice", ratings: [] };
    serve({ ...NOTHING, ...listed({ prune: [learnt] }) });
    draw(<Desk />, "/?reason=prune");
    expect(await screen.findByText("run-7")).toBeTruthy();
  });

  it("does not count what is kept, and counts it again once it is rated anew", async () => {
    const counts = { "GET /api/memories/review-counts": { prune: 12 } };
    const chip = () => screen.getByRole("link", { name: /^Prune/ }).textContent;
    serve({ ...WAITING, ...counts });
    draw(<Desk />, "/?reason=prune&item=prune+m1");
    await waitFor(() => expect(chip()).toBe("Prune 12"));
    await waitFor(() => expect(titles().length).toBe(1));
    fireEvent.keyDown(document.body, { key: "e" });
    await waitFor(() => expect(chip()).toBe("Prune 11"));
    cleanup();
    const worse = { ...memory("m1", "A wrong price"), quality: -3, reason: "rated down twice", ratings: [] };
    serve({ ...WAITING, ...counts, ...listed({ ...HELD, prune: [worse] }) });
    draw(<Desk />, "/?reason=prune");
    await waitFor(() => expect(titles()).toEqual(["A wrong price"]));
    expect(chip()).toBe("Prune 12");
  });
});
