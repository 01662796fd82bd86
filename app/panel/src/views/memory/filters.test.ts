import { describe, expect, it } from "vitest";
import { chipsOf, readAsked, sortChanges } from "./filters";

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
