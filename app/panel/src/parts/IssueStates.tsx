import type { IssueState } from "../api/schema";
import { OneLine } from "./text";

/** The present states of the issues of a hit, in a few words; empty if the hit says them itself. */
export function statesOf(issues: readonly IssueState[]): string {
  return [...new Set(issues.map(({ state }) => state))].join("; ");
}

/** The issues that a judgement states, with their present states. */
export function IssueStates({ issues }: { readonly issues: readonly IssueState[] }) {
  if (issues.length === 0) return null;
  return (
    <ul className="states" aria-label="States of its issues">
      {issues.map((issue) => (
        <li key={`${issue.state} ${issue.title}`} className={issue.status}>
          <strong>{issue.state}:</strong> <OneLine text={issue.title} />
        </li>
      ))}
    </ul>
  );
}
