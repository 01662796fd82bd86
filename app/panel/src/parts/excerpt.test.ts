import { describe, expect, it } from "vitest";
import { excerptOf, marked, termsOf } from "./excerpt";

describe("an excerpt", () => {
  it("keeps the underscores of names and drops those of emphasis", () => {
    expect(excerptOf("Never drop orders.legacy_total, _ever_, **please**.", "", [])).toBe("Never drop orders.legacy_total, ever, please.");
  });
  it("does not begin with the title", () => {
    expect(excerptOf("# Rules\n\nMeasure twice.", "Rules", [])).toBe("Measure twice.");
  });
  it("marks the forms of a word that was searched for", () => {
    const pieces = marked("The registers were verified.", termsOf("register verify"));
    expect(pieces.filter(({ match }) => match).map(({ text }) => text)).toEqual(["registers", "verified"]);
  });
});
