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

describe("the log", () => {
  it("takes back only what no later entry has changed", async () => {
    const deleted = { ...entry("PATCH /api/memories deleted"), count: 2, ids: ["m1", "m2"], titles: ["Berth", "Crane"] };
    serve({ "GET /api/audit": { entries: [entry("PATCH /api/memories live"), deleted], next: null } });
    draw(<Audit />, "/service?part=audit");
    await screen.findAllByRole("listitem");
    const undo = screen.getAllByRole("button", { name: /of them/ }).map((one) => one.textContent);
    expect(undo).toEqual(["Delete all of them again", "Restore 1 of them"]);
  });

  it("does not say of the undo of a rating that it added one", async () => {
    const rating = { ...entry("POST /api/memories/{memory_id}/feedback"), action: "add", object: "rating", ids: ["f1"] };
    const undo = { ...rating, id: "2", operation: "DELETE /api/feedback/{feedback_id}" };
    serve({ "GET /api/audit": { entries: [undo, rating], next: null } });
    draw(<Audit />, "/service?part=audit");
    const said = (await screen.findAllByRole("listitem")).map(({ textContent }) => textContent);
    expect(said[0]).toContain("Zoë undid 1 rating");
    expect(said[1]).toContain("Zoë added 1 rating");
    expect(screen.queryByRole("button", { name: /of them/ })).toBeNull();
  });

  it("folds the ids of links, which say nothing to a reader", async () => {
    const links = {
      ...entry("PATCH /api/memories deleted"),
      action: "remove",
      object: "link",
      count: 2,
      ids: ["m1/m2", "m1/m3"],
      titles: null,
    };
    serve({ "GET /api/audit": { entries: [links], next: null } });
    draw(<Audit />, "/service?part=audit");
    expect((await screen.findByRole("listitem")).textContent).toContain("removed 2 links");
    expect(screen.queryByText("m1/m2")).toBeNull();
    screen.getByRole("button", { name: "all 2" }).click();
    expect(await screen.findByText("m1/m2")).toBeTruthy();
  });
});
