/** A token budget in the address. */

const MOST = 100_000;
/** Tokens. */

export function readBudget(params: URLSearchParams, standard: number): number {
  const budget = Number(params.get("budget") ?? Number.NaN);
  return budget >= 1 && budget <= MOST ? Math.round(budget) : standard;
}

/** The value for the address, which leaves the standard budget out. */
export function budgetChange(budget: number, standard: number): string | null {
  return budget === standard ? null : String(budget);
}
