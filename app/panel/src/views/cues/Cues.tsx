import { useEffect, useMemo, useState } from "react";
import { useCues } from "../../api/cues";
import type { Cue } from "../../api/types";
import { type Selection, usePicking } from "../../parts/choice";
import { termsOf } from "../../parts/excerpt";
import { isNarrowed } from "../../parts/FilterFrame";
import { day } from "../../parts/format";
import { Link } from "../../parts/Link";
import { ListPane } from "../../parts/ListPane";
import { Marked } from "../../parts/Marked";
import { PickBox } from "../../parts/PickBox";
import { Empty, fetchAt, More } from "../../parts/states";
import { linkTo, linkWith, useAddress } from "../../state/address";
import { focusTitle } from "../../state/focus";
import { useListKeys } from "../../state/stepping";
import { readAsked } from "./asked";
import { CueDetail } from "./CueDetail";
import { Counts, Kind, State } from "./CueFacts";
import { CueFilters } from "./CueFilters";
import { SelectedCues } from "./SelectedCues";

/** The lessons that sessions taught, and beside them the one that is open. */
export function Cues() {
  const { params } = useAddress();
  const { filters, open } = useMemo(() => readAsked(params), [params]);
  const pages = useCues(filters);
  const cues = pages.data?.pages.flatMap((page) => page.cues) ?? [];
  const ids = cues.map(({ id }) => id);
  const [chosen, choose] = useState<Selection>(new Set());
  const pick = usePicking(ids, chosen, choose);
  const present = cues.filter(({ id }) => chosen.has(id));
  const terms = useMemo(() => termsOf(filters.text), [filters.text]);
  const listing = linkWith({ cue: null });
  useEffect(() => choose(new Set()), [listing]);
  useEffect(() => {
    document.title = "Cues · Priors";
  }, []);
  const pickOpen = (range: boolean) => {
    if (open !== null) pick(open, range);
  };
  const close = useListKeys(
    { parameter: "cue", ids, open, lineOf, reach: (place) => fetchAt(pages, place, ids.length) },
    { x: () => pickOpen(false), X: () => pickOpen(true), ...(open === null && { Escape: () => choose(new Set()) }) },
  );
  return (
    <div className={`runs ${open ? "with-detail" : ""}`}>
      <ListPane
        name="cues"
        query={pages}
        nothing={cues.length === 0 && !isNarrowed(filters) && <Nothing />}
        toolbar={<CueFilters filters={filters} cues={cues} />}
      >
        {present.length > 0 && <SelectedCues cues={present} done={() => choose(new Set())} />}
        {cues.length === 0 && <p className="members-none">No cue matches these filters.</p>}
        <ol>
          {cues.map((cue) => (
            <Row key={cue.id} cue={cue} open={cue.id === open} terms={terms} chosen={chosen.has(cue.id)} pick={(range) => pick(cue.id, range)} />
          ))}
        </ol>
        <More pages={pages} />
      </ListPane>
      {open && <CueDetail key={open} id={open} onClose={close} />}
    </div>
  );
}

function Nothing() {
  return (
    <Empty title="No cues yet">
      <p>
        Cues are found in <Link href={linkTo("/sessions")}>sessions</Link> after their ingestion. To write one by hand, use <code>POST /api/cues</code>.
      </p>
    </Empty>
  );
}

function lineOf(id: string): string {
  return `cue-${id}`;
}

interface RowProps {
  readonly cue: Cue;
  readonly open: boolean;
  readonly terms: readonly string[];
  readonly chosen: boolean;
  readonly pick: (range: boolean) => void;
}

function Row({ cue, open, terms, chosen, pick }: RowProps) {
  return (
    <li id={lineOf(cue.id)} className={`picked-row ${chosen ? "chosen" : ""}`}>
      <PickBox title={cue.lesson} chosen={chosen} pick={pick} />
      <Link className="row" href={linkWith({ cue: cue.id })} aria-current={open ? "true" : undefined} onClick={open ? focusTitle : undefined}>
        <span className="row-title">
          <Marked text={cue.lesson} terms={terms} />
        </span>
        <span className="row-marks">
          <State state={cue.state} />
        </span>
        <span className="row-excerpt" dir="auto">
          When: <Marked text={cue.trigger} terms={terms} />
        </span>
        <span className="row-facts">
          <Kind kind={cue.kind} />
          {cue.action_types.length > 0 && <span className="extra">{cue.action_types.join(", ")}</span>}
          <Counts cue={cue} />
          <span className="dates">
            <time dateTime={cue.valid_from}>{day(cue.valid_from)}</time>
          </span>
        </span>
      </Link>
    </li>
  );
}
