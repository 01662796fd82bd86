import type { MemoryView } from "../../api/schema";
import { Markdown } from "../../parts/text";

export function Narrative({ memory }: { readonly memory: MemoryView }) {
  if (!memory.observation?.narrative) return null;
  return (
    <section>
      <h3>Narrative</h3>
      <Markdown text={memory.observation.narrative} />
    </section>
  );
}

export function Facts({ memory }: { readonly memory: MemoryView }) {
  const facts = memory.observation?.facts ?? [];
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>Facts</h3>
      <ul className="fact-list">
        {facts.map((fact, place) => (
          <li key={place} dir="auto">
            {fact}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** An observation's text is its narrative above its facts; these stand there already. */
export function Text({ memory }: { readonly memory: MemoryView }) {
  const { observation, body } = memory;
  const said = observation && [observation.narrative, ...observation.facts.map((fact) => `- ${fact}`)].join("\n").trim();
  if (said === body.trim()) return null;
  return (
    <section>
      <h3>Text</h3>
      <Markdown text={body} lines={memory.source?.uri.toLowerCase().endsWith(".json") ?? false} />
    </section>
  );
}
