/** What the injection scan found in a memory. */

import type { MemoryView } from "../api/schema";
import { OneLine } from "./text";

interface Finding {
  readonly field: string;
  readonly rule: string;
  readonly family: string;
  readonly severity: string;
  /** Places in characters, not in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

function findingsOf(memory: MemoryView): readonly Finding[] {
  return (memory.findings ?? []) as unknown as readonly Finding[];
}

function placeOf({ field, start }: Finding): string {
  return `${field} ${start}`;
}

/** The number of places that the scan found; several rules may find one place. */
export function passagesOf(memory: MemoryView): number {
  return new Set(findingsOf(memory).map(placeOf)).size;
}

const EFFECTS: Readonly<Record<string, string>> = {
  block: "keeps the text out of answers",
  suspect: "keeps the text out of histories",
  flag: "only quoted or discussed",
};
const AROUND = 80;
/** Characters before and after a passage that are shown with it. */

export function Findings({ memory }: { readonly memory: MemoryView }) {
  const places = Map.groupBy(findingsOf(memory), placeOf);
  if (places.size === 0) return null;
  return (
    <section>
      <h3>Findings of the injection scan</h3>
      <ul className="fact-list">
        {[...places].map(([place, findings]) => (
          <li key={place}>
            {findings.map(({ rule, family, severity }) => (
              <span key={rule} className={`rule ${severity}`}>
                {rule} ({family}, {EFFECTS[severity] ?? severity})
              </span>
            ))}
            <Passage memory={memory} finding={findings[0] as Finding} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The words that were found, with those around them. */
function Passage({ memory, finding: { field, start, end } }: { readonly memory: MemoryView; readonly finding: Finding }) {
  const letters = Array.from(textOf(memory, field));
  const piece = (from: number, to: number) => <OneLine text={letters.slice(Math.max(0, from), to).join("")} />;
  return (
    <p dir="auto">
      {field}: {start > AROUND && "… "}
      {piece(start - AROUND, start)}
      <mark>{piece(start, end)}</mark>
      {piece(end, end + AROUND)}
      {end + AROUND < letters.length && " …"}
    </p>
  );
}

function textOf({ title, body, observation }: MemoryView, field: string): string {
  const place = /^facts\[(\d+)\]$/.exec(field)?.[1];
  if (place !== undefined) return observation?.facts[Number(place)] ?? "";
  if (field === "title") return title;
  return field === "narrative" ? (observation?.narrative ?? "") : body;
}
