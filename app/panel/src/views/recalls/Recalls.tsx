import { useEffect, useMemo } from "react";
import { useRecalls, useRecallTrends } from "../../api/recalls";
import type { RecallSummary } from "../../api/types";
import { isNarrowed } from "../../parts/FilterFrame";
import { Link } from "../../parts/Link";
import { ListPane } from "../../parts/ListPane";
import { OneLine } from "../../parts/OneLine";
import { Empty, fetchAt, More } from "../../parts/states";
import { Trends } from "../../parts/Trends";
import { linkTo, linkWith, useAddress } from "../../state/address";
import { focusTitle } from "../../state/focus";
import { useListKeys } from "../../state/stepping";
import { readAsked } from "./asked";
import { RecallDetail } from "./RecallDetail";
import { Hits, RecallFacts } from "./RecallFacts";
import { RecallFilters } from "./RecallFilters";

/** The log of recalls: the queries of agents, and the memories that they got. */
export function Recalls() {
  const { params } = useAddress();
  const { filters, open } = useMemo(() => readAsked(params), [params]);
  const pages = useRecalls(filters);
  const recalls = pages.data?.pages.flat() ?? [];
  const trends = useRecallTrends().data ?? [];
  const ids = recalls.map(({ recall_id }) => recall_id);
  const close = useListKeys({ parameter: "recall", ids, open, lineOf, reach: (place) => fetchAt(pages, place, ids.length) });
  useEffect(() => {
    document.title = "Recalls · Priors";
  }, []);
  return (
    <div className={`runs ${open ? "with-detail" : ""}`}>
      <ListPane
        name="recalls"
        query={pages}
        nothing={recalls.length === 0 && !isNarrowed(filters) && <Nothing />}
        toolbar={
          <>
            <Trends days={trends} />
            <RecallFilters filters={filters} recalls={recalls} />
          </>
        }
      >
        {recalls.length === 0 && <p className="members-none">No recall matches these filters.</p>}
        <ol>
          {recalls.map((recall) => (
            <Row key={recall.recall_id} recall={recall} open={recall.recall_id === open} />
          ))}
        </ol>
        <More pages={pages} />
      </ListPane>
      {open && <RecallDetail key={open} id={open} onClose={close} />}
    </div>
  );
}

function Nothing() {
  return (
    <Empty title="No recalls yet">
      <p>
        Each query of an agent to <code>POST /api/history</code> or <code>POST /api/search</code> appears here with
        the memories that it got. To try one, use the <Link href={linkTo("/ask")}>Ask</Link> view.
      </p>
    </Empty>
  );
}

function lineOf(id: string): string {
  return `recall-${id}`;
}

function Row({ recall, open }: { readonly recall: RecallSummary; readonly open: boolean }) {
  return (
    <li id={lineOf(recall.recall_id)}>
      <Link className="row" href={linkWith({ recall: recall.recall_id })} aria-current={open ? "true" : undefined} onClick={open ? focusTitle : undefined}>
        <span className="row-title">
          <OneLine text={recall.query} />
        </span>
        <span className="row-marks">
          <Hits count={recall.hits} />
        </span>
        <RecallFacts recall={recall} />
      </Link>
    </li>
  );
}
