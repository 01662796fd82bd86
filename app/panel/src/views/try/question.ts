/** The question in the address. */

import type { Changes } from "../../state/address";

export interface Question {
  readonly query: string;
  readonly agent: string;
  /** A preset's name, or `both`. */
  readonly preset: string;
  readonly k: number;
  readonly budget: number;
  readonly relevance: number;
  readonly quality: number;
}

const PRESETS = ["both", "default", "classic", "ranks"];
export const STANDARD: Question = { query: "", agent: "", preset: "both", k: 3, budget: 500, relevance: 0.7, quality: 0.3 };

export function readQuestion(params: URLSearchParams): Question {
  const preset = params.get("preset") ?? "";
  return {
    query: params.get("q") ?? "",
    agent: params.get("agent") ?? "",
    preset: PRESETS.includes(preset) ? preset : STANDARD.preset,
    k: Math.round(numberOf(params, "k", 1, 50)),
    budget: Math.round(numberOf(params, "budget", 1, 100_000)),
    relevance: numberOf(params, "relevance", 0, 1),
    quality: numberOf(params, "quality", 0, 1),
  };
}

function numberOf(params: URLSearchParams, name: "k" | "budget" | "relevance" | "quality", least: number, most: number): number {
  const given = params.get(name);
  const value = given ? Number(given) : Number.NaN;
  return value >= least && value <= most ? value : STANDARD[name];
}

/** The address without what is standard anyway. */
export function questionChanges(question: Question): Changes {
  const { query, ...rest } = question;
  const changes = Object.entries(rest).map(([name, value]) => {
    const standard = value === STANDARD[name as keyof Question];
    return [name, standard ? null : String(value)] as const;
  });
  return { q: query.trim(), ...Object.fromEntries(changes) };
}
