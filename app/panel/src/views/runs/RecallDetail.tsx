import type { ReactNode } from "react";
import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { LoggedRecall } from "../../api/schema";
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
  const params = { path: { recall_id: id } };
  const query = useService().useQuery("get", "/api/recalls/{recall_id}", { params }, { staleTime: ONCE.staleTime });
  return (
    <OpenedPane name="recall" query={query} onClose={onClose}>
      {(recall) => <Whole recall={recall} lead={lead} />}
    </OpenedPane>
  );
}

const IMPORTED = "imported";
/** The mode of a recall that another store answered. */

function Whole({ recall, lead }: { readonly recall: LoggedRecall; readonly lead: ReactNode }) {
  const { query, purpose, agent, run_id: run, mode, degraded, took_ms, tokens, created_at, hits, parameters } = recall;
  useSubject(query);
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={query} />
        </PaneTitle>
        <p className="row-facts">
          <span className="kind">{purpose}</span>
          {agent && <span>{agent}</span>}
          {run && <Link href={linkTo("/runs", { run })}>Run {run}</Link>}
          {mode !== IMPORTED && (
            <span className={`mode ${degraded.length ? "degraded" : ""}`}>
              {mode} in {milliseconds(took_ms)}
            </span>
          )}
          {tokens !== null && <span>{whole(tokens)} tokens</span>}
          <time dateTime={created_at}>{exactMoment(created_at)}</time>
        </p>
        {degraded.map(({ arm, reason }) => (
          <p key={arm} className="degradation">
            {arm}: {reason}
          </p>
        ))}
        {lead}
        <p className="muted">
          Press <kbd>t</kbd> to ask it again.
        </p>
      </header>
      <section>
        <h3>Hits</h3>
        {hits.length === 0 && <p className="muted">This recall got no memories.</p>}
        <Hits hits={hits} />
      </section>
      {Object.keys(parameters).length > 0 && (
        <details>
          <summary>Parameters</summary>
          <pre tabIndex={0}>{JSON.stringify(parameters, given, 2)}</pre>
        </details>
      )}
    </article>
  );
}

/** Leaves out what the query did not set. */
function given(_name: string, value: unknown): unknown {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0) ? undefined : value;
}
