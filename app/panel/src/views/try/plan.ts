/** The plan in the address. */

import type { Changes } from "../../state/address";
import { budgetChange, readBudget } from "./budget";

export interface Plan {
  readonly plan: string;
  readonly files: readonly string[];
  readonly agent: string;
  readonly budget: number;
}

const BUDGET = 400;
/** Tokens. */

export function readPlan(params: URLSearchParams): Plan {
  return {
    plan: params.get("q") ?? "",
    files: params.getAll("file"),
    agent: params.get("agent") ?? "",
    budget: readBudget(params, BUDGET),
  };
}

/** The address without what is standard anyway. */
export function planChanges({ plan, files, agent, budget }: Plan): Changes {
  return { q: plan.trim(), file: files, agent: agent || null, budget: budgetChange(budget, BUDGET) };
}
