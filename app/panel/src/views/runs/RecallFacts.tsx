import type { RecallSummaryView } from "../../api/schema";
import { exactMoment, milliseconds, whole } from "../../parts/format";
import { OneLine } from "../../parts/text";

const IMPORTED = "imported";
/** The purpose and the mode of a recall that another store answered. */

export function RecallFacts({ recall }: { readonly recall: Omit<RecallSummaryView, "hits"> }) {
  return (
    <span className="row-facts">
      <span className="kind">{recall.purpose}</span>
      {recall.agent && <span>{recall.agent}</span>}
      {recall.run_id && (
        <span>
          <OneLine text={recall.run_id} />
        </span>
      )}
      {recall.mode !== IMPORTED && (
        <>
          <span className={`mode ${recall.degraded.length ? "degraded" : ""}`}>{recall.mode}</span>
          <span className="extra">{milliseconds(recall.took_ms)}</span>
        </>
      )}
      {recall.tokens !== null && <span className="extra">{whole(recall.tokens)} tokens</span>}
      <span className="dates">
        <time dateTime={recall.created_at}>{exactMoment(recall.created_at)}</time>
      </span>
    </span>
  );
}
