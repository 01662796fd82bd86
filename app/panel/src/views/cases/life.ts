/** The life of an issue over the versions of its case. Pure. */

import type { CaseIssue } from "../../api/schema";

/** How often an issue came back, then in how many versions it was named. */
export function recurrence({ reopened_in, versions }: Pick<CaseIssue, "reopened_in" | "versions">): number {
  return reopened_in.length * 1000 + versions.length;
}

type Sign = "named" | "again" | "resolved" | "silent" | "before" | "resolved after";
type Lived = Pick<CaseIssue, "versions" | "reopened_in" | "resolved_in" | "status">;

/** What an issue was in each version. One that a text calls resolved without a version ends with a piece of its own. */
export function lifeOf(issue: Lived, versions: readonly string[]): readonly { readonly version: string; readonly sign: Sign }[] {
  const first = versions.findIndex((version) => issue.versions.includes(version));
  const signOf = (version: string, place: number): Sign => {
    if (issue.reopened_in.includes(version)) return "again";
    if (issue.resolved_in === version) return "resolved";
    if (issue.versions.includes(version)) return "named";
    return first >= 0 && place >= first ? "silent" : "before";
  };
  const life = versions.map((version, place) => ({ version, sign: signOf(version, place) }));
  return issue.status === "resolved" && issue.resolved_in === ""
    ? [...life, { version: "no version named", sign: "resolved after" }]
    : life;
}
