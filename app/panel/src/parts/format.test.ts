import { describe, expect, it } from "vitest";
import { bytes, counted, duration, exactMoment, milliseconds, money, signed, withMinus } from "./format";
import { phraseOf } from "./relations";

describe("numbers and moments", () => {
  it("are written one way everywhere", () => {
    expect([signed(2), signed(-3), signed(0)]).toEqual(["+2", "−3", "0"]);
    expect([bytes(999), bytes(1_500), bytes(250_000_000)]).toEqual(["999 B", "1.5 kB", "250 MB"]);
    expect([milliseconds(3.146), milliseconds(1234.5)]).toEqual(["3.1 ms", "1,235 ms"]);
    expect([duration(2_340), duration(61_000), duration(7_260_000)]).toEqual(["2.3 s", "1 min 1 s", "2 h 1 min"]);
    expect([money(0), money(12.5), money(0.00042)]).toEqual(["0.00", "12.50", "0.00042"]);
    expect(exactMoment("2026-11-28T09:05:00+02:00")).toBe("28 Nov 2026, 07:05 UTC");
  });

  it("keep the hyphens of dates and names", () => {
    expect(withMinus("score -2 of run-7 on 2026-11-28")).toBe("score −2 of run-7 on 2026-11-28");
  });

  it("say when the service counted no further", () => {
    expect([counted(1, "run", "runs"), counted(2_000, "run", "runs"), counted(10_001, "run", "runs")]).toEqual([
      "1 run",
      "2,000 runs",
      "more than 10,000 runs",
    ]);
  });
});

describe("a link", () => {
  it("is called by its direction", () => {
    expect(phraseOf({ relation: "supersedes", direction: "out" })).toBe("supersedes");
    expect(phraseOf({ relation: "supersedes", direction: "in" })).toBe("superseded by");
    expect(phraseOf({ relation: "was_seen_by", direction: "in" })).toBe("was seen by (of the other)");
  });
});
