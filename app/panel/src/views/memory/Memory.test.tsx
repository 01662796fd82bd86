import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { App } from "../../App";
import { draw, serve } from "../../testing";

afterEach(cleanup);
vi.stubGlobal(
  "IntersectionObserver",
  class {
    observe() {}
    disconnect() {}
  },
);

const hit = (place: number) => ({
  id: `m${place}`,
  title: `Pump ${place}`,
  kind: "note",
  body: `Text ${place}`,
  score: 1 - place / 1000,
  explain: {},
  issues: [],
  source: null,
  quality: 0,
  final_score: null,
  occurred_at: null,
});

/** Answers a search with the best of so many hits; where more are asked for, the last of them is found to be the best.
 * With `hidden`, a page lacks so many that say what others say, unless the most is asked for. */
const searched = (count: number, hidden = 0) => ({
  "GET /api/memories": { memories: [], total: 0, next: null },
  "POST /api/search": ({ body }: { readonly body: { readonly k: number } }) => {
    const found = Array.from({ length: Math.min(count, body.k - (body.k < 200 ? hidden : 0)) }, (_, place) => hit(place));
    const hits = body.k > 50 ? found.toReversed() : found;
    return { hits, mode: "hybrid", degraded: [], probability: null, recall_id: "r", took_ms: 1, period: null };
  },
});

const rows = () => [...document.querySelectorAll(".picked-row")].map(({ id }) => id);
const more = () => screen.queryByRole("button", { name: "Show more" });
const ks = (asked: ReturnType<typeof serve>) =>
  asked.filter(({ url }) => url.pathname === "/api/search").map(({ body }) => (body as { readonly k: number }).k);

describe("a search of memories", () => {
  it("goes on page after page to its last match, and moves nothing that is shown", async () => {
    const asked = serve(searched(120));
    draw(<App />, "/memory?q=pump");
    await screen.findByText("The best 50 matches; there may be more");
    const first = rows();
    fireEvent.click(more() as HTMLElement);
    await screen.findByText("The best 100 matches; there may be more");
    expect(rows().slice(0, 50)).toEqual(first);
    fireEvent.click(more() as HTMLElement);
    await screen.findByText("The best 120 matches; there may be more");
    fireEvent.click(more() as HTMLElement);
    await screen.findByText("120 matches");
    expect(more()).toBeNull();
    expect(new Set(rows()).size).toBe(120);
    expect(ks(asked)).toEqual([50, 100, 150, 200]);
    expect(screen.queryByText(/answers its best/)).toBeNull();
  });

  it("says where it ends before its matches do", async () => {
    const asked = serve(searched(900));
    draw(<App />, "/memory?q=pump");
    for (const count of [50, 100, 150]) {
      await screen.findByText(`The best ${count} matches; there may be more`);
      fireEvent.click(more() as HTMLElement);
    }
    await screen.findByText("A search answers its best 200: other words or a filter lead to the rest.");
    expect(screen.getByText("The best 200 matches; there may be more")).toBeTruthy();
    expect(more()).toBeNull();
    expect(ks(asked)).toEqual([50, 100, 150, 200]);
  });

  it("does not take a page that lacks what says the same for the last one", async () => {
    const asked = serve(searched(89, 21));
    draw(<App />, "/memory?q=pump");
    await screen.findByText("The best 29 matches; there may be more");
    fireEvent.click(more() as HTMLElement);
    await screen.findByText("89 matches");
    expect(screen.getByText("Of matches with the same text or title, one is shown.")).toBeTruthy();
    expect(more()).toBeNull();
    expect(ks(asked)).toEqual([50, 200]);
  });

  it("ends at once where nothing is found", async () => {
    const asked = serve(searched(0));
    draw(<App />, "/memory?q=pump");
    await screen.findByText("No memory matches this search");
    expect(ks(asked)).toEqual([50]);
  });
});
