/** One sentence on what memory did. Pure. */

import type { EffectView } from "../../api/schema";
import { decimal, whole } from "../../parts/format";

/** Compares the scores of runs that were shown memories with those of runs that were shown none. */
export function sentenceOf({ runs, history }: Pick<EffectView, "runs" | "history">): string {
  if (runs === 0) return "No run is finished yet, so nothing tells whether memory helped.";
  const score = history.measures.find(({ name }) => name === "score");
  const [given, without] = [runsOf(history.given), runsOf(history.without)];
  const groups = `${given} with memories and ${without} without`;
  if (!score?.given || !score.without || !score.difference) return `${groups}: too few scores to tell whether memory helped.`;
  const { mean, low, high } = score.difference;
  const means = `mean score ${decimal(score.given.mean, 1)} with memories (${given}), ${decimal(score.without.mean, 1)} without (${without})`;
  if (low === null || high === null) return `The ${means}: too few to tell chance from help.`;
  const between = `The difference is ${plus(mean)}, and in 95 of 100 cases between ${plus(low)} and ${plus(high)}.`;
  if (low > 0) return `Runs that were shown memories scored better: ${means}. ${between}`;
  if (high < 0) return `Runs that were shown memories scored worse: ${means}. ${between}`;
  return `Memory made no difference beyond chance: ${means}. ${between}`;
}

function runsOf(count: number): string {
  return count === 1 ? "1 run" : `${whole(count)} runs`;
}

function plus(value: number): string {
  return `${value > 0 ? "+" : ""}${decimal(value, 2)}`;
}
