import { cleanup, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { draw, serve } from "../../testing";
import { Links } from "./Links";

afterEach(cleanup);

const ID = "00000000-0000-7000-8000-000000000001";
const OTHER = "00000000-0000-7000-8000-000000000002";

const APART = { task_type: "", run_id: null, source: "", ordinal: null, user: "", occurred_at: null, created_at: "2026-11-20T10:00:00Z" };

describe("the links of a memory", () => {
  it("names a turn, which has no title, by its words", async () => {
    const link = {
      relation: "mentions",
      direction: "out",
      memory_id: OTHER,
      title: "Could you check the pump …",
      kind: "message",
      weight: 1,
      ...APART,
    };
    serve({ [`GET /api/memories/${ID}/around`]: { neighbours: [], links: [link], runs: {} } });
    draw(<Links id={ID} />, "/memory?workspace=north");
    expect(await screen.findByRole("link", { name: "Could you check the pump …" })).toBeTruthy();
  });

  it("opens a linked memory in Memory, also from the desk", async () => {
    const link = { ...APART, relation: "similar", direction: "out", memory_id: OTHER, title: "Pump", kind: "note", weight: 1 };
    serve({ [`GET /api/memories/${ID}/around`]: { neighbours: [], links: [link], runs: {} } });
    draw(<Links id={ID} />, "/?workspace=north&reason=severe");
    const found = await screen.findByRole("link", { name: "Pump" });
    expect(found.getAttribute("href")).toBe(`/memory?workspace=north&memory=${OTHER}`);
  });

  it("stays on the map, where one is looked at", async () => {
    const link = { ...APART, relation: "similar", direction: "out", memory_id: OTHER, title: "Pump", kind: "note", weight: 1 };
    serve({ [`GET /api/memories/${ID}/around`]: { neighbours: [], links: [link], runs: {} } });
    draw(<Links id={ID} />, `/memory?look=map&memory=${ID}`);
    const found = await screen.findByRole("link", { name: "Pump" });
    expect(found.getAttribute("href")).toBe(`/memory?look=map&memory=${OTHER}`);
  });

  it("tells links with one title apart by their source, their place in it and their run", async () => {
    const link = { ...APART, relation: "similar", direction: "out", title: "Sources", weight: 0.9 };
    const chunk = { ...link, kind: "chunk", source: "file:///reports/tea/v3.md" };
    const links = [
      { ...chunk, memory_id: OTHER, ordinal: 4 },
      { ...chunk, memory_id: "00000000-0000-7000-8000-000000000003", ordinal: 9 },
      { ...link, memory_id: "00000000-0000-7000-8000-000000000004", kind: "observation", run_id: "run-058" },
    ];
    serve({ [`GET /api/memories/${ID}/around`]: { neighbours: [], links, runs: {} } });
    draw(<Links id={ID} />, "/memory?workspace=north");
    expect(await screen.findAllByRole("link", { name: "Sources" })).toHaveLength(3);
    expect([...document.querySelectorAll(".row-facts")].map((facts) => facts.textContent)).toEqual([
      "chunktea/v3.md #420 Nov 2026",
      "chunktea/v3.md #920 Nov 2026",
      "observationrun-05820 Nov 2026",
    ]);
  });
});
