import { useRef } from "react";
import { useService } from "../../api/client";
import { useEffectReport } from "../../api/queries";
import { Loading } from "../../parts/states";
import { notifyFailure } from "../../state/notices";
import { useShortcuts } from "../../state/shortcuts";
import { sentenceOf } from "./sentence";

/** One sentence on whether memory helped, and what cannot be concluded. */
export function Helped() {
  const found = useEffectReport();
  const report = found.data;
  const save = useSaving();
  const fold = useRef<HTMLDetailsElement>(null);
  useShortcuts({ w: () => fold.current?.toggleAttribute("open") });
  if (!report) return found.isPending ? <Loading what="whether memory helped" /> : null;
  const [first, ...others] = report.limits;
  return (
    <section className="helped" aria-label="Did memory help?">
      <p>{sentenceOf(report)}</p>
      {report.runs > 0 && (
        <details ref={fold}>
          <summary title="Unfold (w)">What cannot be concluded{first && `: ${first}`}</summary>
          <ul className="effect-limits">
            {others.map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
          </ul>
          <p className="note-actions">
            <button type="button" disabled={save.isPending} onClick={() => save.mutate({ params: { query: { format: "html" } } })}>
              Save the whole report
            </button>
          </p>
        </details>
      )}
    </section>
  );
}

/** Saves the whole report as a file. */
function useSaving() {
  return useService().useMutation("get", "/api/effect", {
    onSuccess: ({ document: text }) => {
      const href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
      const link = document.createElement("a");
      link.href = href;
      link.download = "effect.html";
      link.click();
      URL.revokeObjectURL(href);
    },
    onError: (error) => notifyFailure("The report was not saved", error),
  });
}
