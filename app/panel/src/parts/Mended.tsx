import type { MendedIssue } from "../api/types";
import { OneLine } from "./OneLine";

/** The versions that mended the issues of a hit, in a few words; empty if none is mended. */
export function mendedIn(issues: readonly MendedIssue[]): string {
  if (issues.length === 0) return "";
  const versions = [...new Set(issues.map(({ version }) => version).filter(Boolean))];
  return versions.length > 0 ? `mended in ${versions.join(", ")}` : "mended since";
}

/** The issues that a judgement states, and that a later version of its test case mended. */
export function Mended({ issues }: { readonly issues: readonly MendedIssue[] }) {
  if (issues.length === 0) return null;
  return (
    <ul className="mended" aria-label="Mended issues">
      {issues.map((issue) => (
        <li key={`${issue.version} ${issue.title}`}>
          <strong>{issue.version ? `Mended in ${issue.version}` : "Mended since"}:</strong> <OneLine text={issue.title} />
        </li>
      ))}
    </ul>
  );
}
