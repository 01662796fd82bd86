import type { ReactNode } from "react";
import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { RecallSummaryView, RecallView } from "../../api/schema";
import { exactMoment, milliseconds, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { OpenedPane, PaneTitle } from "../../parts/pane";
import { Hits } from "../../parts/ScoreBar";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useSubject } from "../../state/tried";

interface Props {
  readonly id: string;
  readonly onClose: () => void;
  /** What the place says of it and lets one do with it. */
  readonly lead?: ReactNode;
}

/** One recall: its query and parameters, and its hits as they were given. */
export function RecallDetail({ id, onClose, lead }: Props) {
  return (
    <OpenedPane
      name="recall"
      query={useService().useQuery(
        "get",
        "/api/recalls/{recall_id}",
        { params: { path: { recall_id: id } } },
        { staleTime: ONCE.staleTime },
      )}
      onClose={onClose}
    >
      {(recall) => <Whole recall={recall} lead={lead} />}
    </OpenedPane>
  );
}

function Whole({ recall, lead }: { readonly recall: RecallView; readonly lead: ReactNode }) {
  useSubject(recall.query);
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={recall.query} />
        </PaneTitle>
        <RecallFacts recall={recall} />
        {recall.degraded.map(({ arm, reason }) => (
          <p key={arm} className="degradation">
            {arm}: {reason}
          </p>
        ))}
        {lead}
        <p className="muted">
          Press <kbd>t</kbd> to ask it again.{" "}
          {recall.run_id && <Link href={linkTo("/runs", { run: recall.run_id })}>Run {recall.run_id}</Link>}
        </p>
      </header>
      <section>
        <h3>Hits</h3>
        {recall.hits.length === 0 && <p className="muted">This recall got no memories.</p>}
        <Hits hits={recall.hits} />
      </section>
      {Object.keys(recall.parameters).length > 0 && (
        <section>
          <h3>Parameters</h3>
          <pre tabIndex={0}>{JSON.stringify(recall.parameters, given, 2)}</pre>
        </section>
      )}
    </article>
  );
}

/** Leaves out what the query did not set. */
function given(_name: string, value: unknown): unknown {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0) ? undefined : value;
}

const IMPORTED = "imported";
/** The purpose and the mode of a recall that another store answered. */

function RecallFacts({ recall }: { readonly recall: Omit<RecallSummaryView, "hits"> }) {
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
