/** The life of an issue over the versions of its case. Pure. */

import type { CaseIssueView } from "../../api/schema";

/** How often an issue came back, then in how many versions it was named. */
export function recurrence({ reopened_in, versions }: Pick<CaseIssueView, "reopened_in" | "versions">): number {
  return reopened_in.length * 1000 + versions.length;
}

/** What an issue was in a version: named, back, resolved, or not named. */
export function signOf(
  issue: Pick<CaseIssueView, "versions" | "reopened_in" | "resolved_in">,
  version: string,
  begun: boolean,
): "named" | "again" | "resolved" | "silent" | "before" {
  if (issue.reopened_in.includes(version)) return "again";
  if (issue.resolved_in === version) return "resolved";
  if (issue.versions.includes(version)) return "named";
  return begun ? "silent" : "before";
}
