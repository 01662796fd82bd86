import { describe, expect, it } from "vitest";
import { recurrence, signOf } from "./life";

const ISSUE = { versions: ["v1", "v3"], reopened_in: ["v3"], resolved_in: "v4" };

describe("the life of an issue", () => {
  it("tells named, silent, back and resolved apart", () => {
    const signs = ["v0", "v1", "v2", "v3", "v4"].map((version, place) => signOf(ISSUE, version, place > 0));
    expect(signs).toEqual(["before", "named", "silent", "again", "resolved"]);
  });
  it("counts what came back before what was named often", () => {
    expect(recurrence(ISSUE)).toBeGreaterThan(recurrence({ versions: ["a", "b", "c", "d"], reopened_in: [] }));
  });
});
