/** The context in the address. */

import type { Changes } from "../../state/address";
import { budgetChange, readBudget } from "./budget";

export interface Asked {
  readonly observation: string;
  /** The id of the session whose latest turns are shown; empty for none. */
  readonly session: string;
  readonly agent: string;
  readonly budget: number;
}

export interface Shown {
  readonly asked: Asked;
  /** The id of the context that is open; empty for none. */
  readonly context: string;
}

const BUDGET = 4_000;
/** Tokens. */

export function readShown(params: URLSearchParams): Shown {
  return {
    asked: {
      observation: params.get("q") ?? "",
      session: params.get("session") ?? "",
      agent: params.get("agent") ?? "",
      budget: readBudget(params, BUDGET),
    },
    context: params.get("context") ?? "",
  };
}

/** The address without what is standard anyway. */
export function askedChanges({ observation, session, agent, budget }: Asked): Changes {
  return { q: observation.trim(), session: session.trim() || null, agent: agent || null, budget: budgetChange(budget, BUDGET) };
}
