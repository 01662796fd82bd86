import { describe, expect, it } from "vitest";
import type { Filters, NodeView } from "../../api/schema";
import { chipsOf, globOf, passes, readAsked, sortChanges } from "./filters";
import { isWithin } from "./map/scene";

const read = (query: string) => readAsked(new URLSearchParams(query));

describe("the filters of the address", () => {
  it("become those of the service; a reader's last day is included", () => {
    const { filters } = read("kind=note&kind=cue&tag=a&since=2026-02-01&until=2026-02-28&min_quality=-3");
    expect(filters).toMatchObject({
      kinds: ["note", "cue"],
      tags: ["a"],
      since: "2026-02-01T00:00:00Z",
      until: "2026-03-01T00:00:00.000Z",
      min_quality: -3,
    });
  });

  it("leave out what is not valid, and name it", () => {
    const query = "kind=novel&until=2026-02-30&min_score=11";
    expect(read(query).filters).not.toHaveProperty("until");
    expect(read(query).filters.kinds).toEqual([]);
    expect(chipsOf(new URLSearchParams(query)).map(({ label, inForce }) => [label, inForce])).toEqual([
      ["Kind: novel", false],
      ["Dated to 2026-02-30", false],
      ["Score ≥ 11", false],
    ]);
  });

  it("each have a chip that takes only it away", () => {
    const [first] = chipsOf(new URLSearchParams("tag=a&tag=b&min_quality=-2"));
    expect(first?.without).toEqual({ tag: ["b"] });
    expect(chipsOf(new URLSearchParams("min_quality=-2"))[0]?.label).toBe("Quality ≥ −2");
  });

  it("keep the usual order out of the address", () => {
    expect(read("sort=score&order=asc")).toMatchObject({ sort: "score", order: "asc" });
    expect(read("sort=price")).toMatchObject({ sort: "created", order: "desc" });
    expect(sortChanges("created desc")).toEqual({ sort: null, order: null });
  });
});

const NODE = {
  kind: "observation",
  task_type: "planning",
  verdict: "fail",
  tags: ["a", "b"],
  source: "docs/plans/one.md",
  user: "",
  quality: -1,
  final_score: null,
  cluster: 0,
  occurred_at: "2026-02-01T00:00:00Z",
  created_at: "2026-03-01T00:00:00Z",
} as unknown as NodeView;

describe("the map's memories", () => {
  const cases: readonly (readonly [Partial<Filters>, boolean])[] = [
    [{}, true],
    [{ kinds: ["note", "observation"] }, true],
    [{ kinds: ["note"] }, false],
    [{ task_types: ["planning"] }, true],
    [{ task_types: ["review"] }, false],
    [{ verdicts: ["pass"] }, false],
    [{ tags: ["a", "b"] }, true],
    [{ tags: ["a", "c"] }, false],
    [{ source: "plans/*.md" }, true],
    [{ source: "docs/*.md" }, false],
    [{ min_quality: -1, max_quality: -1 }, true],
    [{ min_quality: 0 }, false],
    [{ min_score: 0 }, false],
  ];
  it.each(cases)("with the filters %j pass: %s", (filters, expected) => {
    expect(passes(NODE, { filters, user: null })).toBe(expected);
  });

  it("belong to a user, or to nobody", () => {
    expect(passes(NODE, { filters: {}, user: "" })).toBe(true);
    expect(passes(NODE, { filters: {}, user: "ada" })).toBe(false);
  });

  it.each([
    ["since=2026-02-01&until=2026-02-01", true],
    ["until=2026-01-31", false],
    ["since=2026-02-02", false],
    ["since=2026-02-30", true],
  ])("are of the time of the list for %s: %s", (query, expected) => {
    expect(isWithin(NODE, read(query).filters)).toBe(expected);
  });

  it("have no time if they are undated passages of a report", () => {
    const { filters } = read("since=2026-01-01");
    expect(isWithin({ ...NODE, occurred_at: null }, filters)).toBe(true);
    expect(isWithin({ ...NODE, occurred_at: null, kind: "chunk" }, filters)).toBe(false);
  });
});

describe("a path with stars", () => {
  it.each([
    ["one.md", true],
    ["/plans/one.md", true],
    ["**/one.md", true],
    ["docs/**", true],
    ["docs/*", false],
    ["on?.md", true],
    ["ne.md", false],
    ["one+md", false],
  ])("%s names the file: %s", (pattern, expected) => {
    expect(globOf(pattern).test("docs/plans/one.md")).toBe(expected);
  });
});
