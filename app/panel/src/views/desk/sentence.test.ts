import { describe, expect, it } from "vitest";
import type { EffectView } from "../../api/schema";
import { sentenceOf } from "./sentence";

type Report = Pick<EffectView, "runs" | "history">;

function report(difference: { mean: number; low: number | null; high: number | null } | null): Report {
  const mean = (of: number) => ({ mean: of, low: null, high: null, runs: 9 });
  const score = { name: "score", given: mean(7), without: mean(6), difference };
  return { runs: 20, history: { given: 12, without: 8, measures: [score] } } as unknown as Report;
}

describe("whether memory helped", () => {
  it("says nothing of it without runs", () => {
    expect(sentenceOf({ ...report(null), runs: 0 })).toContain("No run is finished yet");
  });
  it("claims help only where the whole interval is above nothing", () => {
    expect(sentenceOf(report({ mean: 1, low: 0.2, high: 1.8 }))).toContain("scored better");
    expect(sentenceOf(report({ mean: 1, low: -0.2, high: 2.2 }))).toContain("no difference beyond chance");
    expect(sentenceOf(report({ mean: -1, low: -2, high: -0.1 }))).toContain("scored worse");
  });
  it("says when too few runs tell nothing", () => {
    expect(sentenceOf(report({ mean: 1, low: null, high: null }))).toContain("too few to tell chance from help");
    expect(sentenceOf(report(null))).toContain("too few scores");
  });
});
