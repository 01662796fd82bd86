import { useService } from "../../api/client";
import type { MemoryView } from "../../api/schema";
import { Icon } from "../../parts/Icon";
import { findingsOf, MarkedText } from "../../parts/MarkedText";
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
  const evaluator = useService().useQuery(
    "get",
    "/api/status",
    {},
    // Not asked for while nothing looks like an issue.
    { select: (status) => status.evaluator, staleTime: Number.POSITIVE_INFINITY, enabled: facts.some((fact) => fact.startsWith("[")) },
  ).data;
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>Facts</h3>
      <ul className="fact-list">
        {facts.map((fact, place) => (
          <Fact key={place} text={fact} evaluator={evaluator} />
        ))}
      </ul>
    </section>
  );
}

/** An evaluator's issue begins with the evaluator's name; brackets alone make none. */
function Fact({ text, evaluator }: { readonly text: string; readonly evaluator: string | undefined }) {
  const mark = `[${evaluator}] `;
  if (evaluator === undefined || !text.startsWith(mark)) return <li dir="auto">{text}</li>;
  return (
    <li className="issue" dir="auto">
      <span className="issue-mark">
        <Icon name="flag" />
        Issue · {evaluator}
      </span>{" "}
      {text.slice(mark.length)}
    </li>
  );
}

/** An observation's text is its narrative above its facts; these stand there already, as does a text with findings. */
export function Text({ memory }: { readonly memory: MemoryView }) {
  const { observation, body } = memory;
  const said = observation && [observation.narrative, ...observation.facts.map((fact) => `- ${fact}`)].join("\n").trim();
  if (said === body.trim() || findingsOf(memory).some(({ field }) => field === "body")) return null;
  return (
    <section>
      <h3>Text</h3>
      <Markdown text={body} lines={memory.source?.uri.toLowerCase().endsWith(".json") ?? false} />
    </section>
  );
}

export function Findings({ memory }: { readonly memory: MemoryView }) {
  const findings = findingsOf(memory);
  if (findings.length === 0) return null;
  return (
    <section>
      <h3>Findings of the injection scan</h3>
      <MarkedText memory={memory} />
    </section>
  );
}
