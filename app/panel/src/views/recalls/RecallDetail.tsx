import { useRecall } from "../../api/recalls";
import type { Recall } from "../../api/types";
import { OpenedPane } from "../../parts/DetailPane";
import { GivenHits, isScored } from "../../parts/GivenHits";
import { Link } from "../../parts/Link";
import { OneLine } from "../../parts/OneLine";
import { PaneTitle } from "../../parts/PaneTitle";
import { ScoreLegend } from "../../parts/ScoreBar";
import { linkTo } from "../../state/address";
import { askAgain } from "./asked";
import { RecallFacts } from "./RecallFacts";

interface Props {
  readonly id: string;
  readonly onClose: () => void;
}

/** One recall: its query and parameters, and its hits as they were given. */
export function RecallDetail({ id, onClose }: Props) {
  return (
    <OpenedPane name="recall" query={useRecall(id)} onClose={onClose}>
      {(recall) => <Whole recall={recall} />}
    </OpenedPane>
  );
}

function Whole({ recall }: { readonly recall: Recall }) {
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
        <p className="heading-line">
          <Link className="button" href={askAgain(recall)}>
            Ask again
          </Link>
          {recall.run_id && <Link href={linkTo("/runs", { run: recall.run_id })}>Run {recall.run_id}</Link>}
        </p>
      </header>
      <Hits recall={recall} />
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

function Hits({ recall: { hits } }: { readonly recall: Recall }) {
  if (hits.length === 0) {
    return (
      <section>
        <h3>Hits</h3>
        <p className="muted">This recall got no memories.</p>
      </section>
    );
  }
  return (
    <section>
      <h3>Hits</h3>
      {hits.some(isScored) && <ScoreLegend />}
      <GivenHits hits={hits} />
    </section>
  );
}
