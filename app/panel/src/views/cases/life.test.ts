import { describe, expect, it } from "vitest";
import { lifeOf, recurrence } from "./life";

const ISSUE = { versions: ["v1", "v3"], reopened_in: ["v3"], resolved_in: "v4", status: "resolved" };
const signs = (issue: typeof ISSUE, versions: readonly string[]) => lifeOf(issue, versions).map(({ sign }) => sign);

describe("the life of an issue", () => {
  it("tells named, silent, back and resolved apart", () => {
    expect(signs(ISSUE, ["v0", "v1", "v2", "v3", "v4"])).toEqual(["before", "named", "silent", "again", "resolved"]);
  });
  it("ends as resolved where a text says so and names no version", () => {
    const issue = { ...ISSUE, resolved_in: "", reopened_in: [] };
    expect(signs(issue, ["v1", "v2", "v3"])).toEqual(["named", "silent", "named", "resolved after"]);
    expect(signs({ ...issue, status: "open" }, ["v1", "v2", "v3"])).toEqual(["named", "silent", "named"]);
  });
  it("counts what came back before what was named often", () => {
    expect(recurrence(ISSUE)).toBeGreaterThan(recurrence({ versions: ["a", "b", "c", "d"], reopened_in: [] }));
  });
});
