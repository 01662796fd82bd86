import type { MemoryView } from "../../api/schema";
import { Markdown } from "../../parts/text";

/** What a memory says: the narrative and the facts of an observation, and the text where these are not all of it. */
export function Content({ memory: { observation, body, source } }: { readonly memory: MemoryView }) {
  const { narrative = "", facts = [] } = observation ?? {};
  const said = observation && [narrative, ...facts.map((fact) => `- ${fact}`)].join("\n").trim();
  return (
    <>
      {narrative && (
        <section>
          <h3>Narrative</h3>
          <Markdown text={narrative} />
        </section>
      )}
      {facts.length > 0 && (
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
      )}
      {said !== body.trim() && (
        <section>
          <h3>Text</h3>
          <Markdown text={body} lines={source?.uri.toLowerCase().endsWith(".json") ?? false} />
        </section>
      )}
    </>
  );
}
