import { cleanup, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { draw, serve } from "../../testing";
import { Audit } from "./Audit";

afterEach(cleanup);

function entry(operation: string) {
  const at = "2026-11-28T09:05:00Z";
  return { id: operation, who: "Zoë", operation, action: "change", object: "memory", count: 1, ids: ["m1"], titles: ["Berth"], at };
}

describe("an entry of the log", () => {
  it.each([
    ["PATCH /api/memories deleted", "deleted", "Restore all of them"],
    ["PATCH /api/memories live", "restored", "Delete all of them again"],
    ["PATCH /api/memories superseded", "replaced", null],
    ["PATCH /api/memories quarantined", "quarantined", null],
  ])("%s says what it did beside its undo", async (operation, verb, undo) => {
    serve({ "GET /api/audit": { entries: [entry(operation)], next: null } });
    draw(<Audit />, "/service?part=audit&workspace=north");
    expect((await screen.findByRole("listitem")).textContent).toContain(`Zoë ${verb} 1 memory`);
    expect(screen.queryByRole("button", { name: /of them/ })?.textContent ?? null).toBe(undo);
  });
});
