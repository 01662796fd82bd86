/** The plan in the address. */

import type { Changes } from "../../state/address";

export interface Plan {
  readonly plan: string;
  readonly files: readonly string[];
  readonly agent: string;
  readonly budget: number;
}

const BUDGET = 400;
const MOST = 100_000;
/** Tokens. */

export function readPlan(params: URLSearchParams): Plan {
  const budget = Number(params.get("budget") ?? Number.NaN);
  return {
    plan: params.get("q") ?? "",
    files: params.getAll("file"),
    agent: params.get("agent") ?? "",
    budget: budget >= 1 && budget <= MOST ? Math.round(budget) : BUDGET,
  };
}

/** The address without what is standard anyway. */
export function planChanges({ plan, files, agent, budget }: Plan): Changes {
  return { q: plan.trim(), file: files, agent: agent || null, budget: budget === BUDGET ? null : String(budget) };
}
