import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { copiesOf, showQualities } from "./copies";

const ONE = { id: "one", quality: 0, title: "One" };
const TWO = { id: "two", quality: 1, title: "Two" };

function filled(): QueryClient {
  const cache = new QueryClient();
  cache.setQueryData(["get", "/api/memories"], { pages: [{ memories: [ONE, TWO] }] });
  cache.setQueryData(["get", "/api/graph"], { nodes: [TWO] });
  cache.setQueryData(["get", "/api/search"], { hits: [{ ...ONE, score: 0.5 }] });
  return cache;
}

describe("the copies of a memory", () => {
  it("are found in every answer", () => {
    expect(copiesOf(filled(), new Set(["one"])).length).toBe(2);
    expect(copiesOf(filled(), new Set(["three"]))).toEqual([]);
  });

  it("all show a rating at once, and nothing else changes", () => {
    const cache = filled();
    const map = cache.getQueryData(["get", "/api/graph"]);
    showQualities(cache, new Map([["one", 2]]));
    expect(copiesOf(cache, new Set(["one"])).map(({ quality }) => quality)).toEqual([2, 2]);
    expect(cache.getQueryData(["get", "/api/graph"])).toBe(map);
    expect(copiesOf(cache, new Set(["two"])).map(({ quality }) => quality)).toEqual([1, 1]);
  });
});
