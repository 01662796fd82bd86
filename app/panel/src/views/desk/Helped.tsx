import { useEffectExport, useEffectReport } from "../../api/effect";
import { sentenceOf } from "./sentence";

const ALL = { since: "", task_type: "" };

/** One sentence on whether memory helped, and what cannot be concluded. */
export function Helped() {
  const report = useEffectReport(ALL).data;
  const save = useEffectExport(ALL);
  if (!report) return null;
  return (
    <section className="helped" aria-label="Did memory help?">
      <p>{sentenceOf(report)}</p>
      {report.runs > 0 && (
        <details>
          <summary>What cannot be concluded</summary>
          <ul className="effect-limits">
            {report.limits.map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
          </ul>
          <p className="note-actions">
            {(["markdown", "html"] as const).map((format) => (
              <button key={format} type="button" disabled={save.isPending} onClick={() => save.mutate(format)}>
                Save the whole report as {format === "html" ? "HTML" : "Markdown"}
              </button>
            ))}
          </p>
        </details>
      )}
    </section>
  );
}
