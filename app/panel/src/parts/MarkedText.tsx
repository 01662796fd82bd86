/** A memory's text with what the injection scan found marked in it. */

import type { ReactNode } from "react";
import type { MemoryView } from "../api/schema";

interface Finding {
  readonly field: string;
  readonly rule: string;
  readonly family: string;
  readonly severity: string;
  /** Places in characters, not in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

function isFinding(given: Partial<Finding>): given is Finding {
  return typeof given.field === "string" && typeof given.start === "number" && typeof given.end === "number";
}

export function findingsOf(memory: MemoryView): readonly Finding[] {
  return (memory.findings ?? []).map((given) => given as Partial<Finding>).filter(isFinding);
}

/** The number of places that the scan found; several rules may find one place. */
export function passagesOf(memory: MemoryView): number {
  const ends = new Map<string, number>();
  const ordered = [...findingsOf(memory)].sort((one, other) => one.start - other.start);
  return ordered.filter(({ field, start, end }) => {
    const before = ends.get(field) ?? -1;
    ends.set(field, Math.max(before, end));
    return start > before;
  }).length;
}

export function MarkedText({ memory }: { readonly memory: MemoryView }) {
  const findings = findingsOf(memory);
  const fields = [...new Set(findings.map((finding) => finding.field))];
  return (
    <>
      {fields.map((field) => (
        <figure key={field} className="marked">
          <figcaption>
            {field}: <Rules findings={findings.filter((finding) => finding.field === field)} />
          </figcaption>
          <div className="marked-text" tabIndex={0} role="region" dir="auto" aria-label={`Findings in the ${field}`}>
            {pieces(
              textOf(memory, field),
              findings.filter((finding) => finding.field === field),
            )}
          </div>
        </figure>
      ))}
    </>
  );
}

const EFFECTS: Readonly<Record<string, string>> = {
  block: "keeps the text out of answers",
  suspect: "keeps the text out of histories",
  flag: "only quoted or discussed",
};

function Rules({ findings }: { readonly findings: readonly Finding[] }) {
  const rules = [...new Map(findings.map((finding) => [finding.rule, finding])).values()];
  return rules.map(({ rule, family, severity }) => (
    <span key={rule} className={`rule ${severity}`}>
      {rule} ({family}, {EFFECTS[severity] ?? severity})
    </span>
  ));
}

function textOf(memory: MemoryView, field: string): string {
  const place = /^facts\[(\d+)\]$/.exec(field)?.[1];
  if (place !== undefined) return memory.observation?.facts[Number(place)] ?? "";
  if (field === "title") return memory.title;
  if (field === "narrative") return memory.observation?.narrative ?? "";
  return memory.body;
}

function pieces(text: string, findings: readonly Finding[]): readonly ReactNode[] {
  const letters = Array.from(text);
  const shown: ReactNode[] = [];
  let at = 0;
  for (const finding of [...findings].sort((one, other) => one.start - other.start)) {
    if (finding.start < at) continue;
    shown.push(letters.slice(at, finding.start).join(""));
    shown.push(<mark key={finding.start}>{letters.slice(finding.start, finding.end).join("")}</mark>);
    at = finding.end;
  }
  shown.push(letters.slice(at).join(""));
  return shown;
}
