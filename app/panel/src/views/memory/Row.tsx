import { memo, useEffect, useRef } from "react";
import type { HitView, MemoryView } from "../../api/schema";
import { excerptOf, nameOf } from "../../parts/excerpt";
import { day, shortPath } from "../../parts/format";
import { PickBox, RowLink } from "../../parts/list";
import { Quality, Score, Verdict } from "../../parts/marks";
import { OneLine, Pieces, Title } from "../../parts/text";
import { linkWith } from "../../state/address";

interface Props {
  readonly item: HitView | MemoryView;
  readonly open: boolean;
  /** The one row that Tab stops at: keys lead to the others, so that Tab leaves a list without an end. */
  readonly stop: boolean;
  /** Shows the storage date beside the event date, because the list is in that order. */
  readonly stored: boolean;
  /** The words that were searched for. */
  readonly terms: readonly string[];
  readonly chosen: boolean;
  readonly pick: (id: string, range: boolean) => void;
}

export function lineOf(id: string): string {
  return `memory-${id}`;
}

export const Row = memo(function Row({ item, open, stop, stored, terms, chosen, pick }: Props) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (open) row.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const title = nameOf(item);
  const excerpt = excerptOf(item.body, item.title, terms);
  return (
    <li ref={row} id={lineOf(item.id)} className={`picked-row ${chosen ? "chosen" : ""}`}>
      <PickBox title={title} chosen={chosen} stop={stop} pick={(range) => pick(item.id, range)} />
      <RowLink href={linkWith({ memory: item.id })} open={open} stop={stop}>
        <span className="row-title">
          <Title title={title} terms={terms} />
        </span>
        <span className="row-marks">
          {"explain" in item && (
            <span className="match">
              <span className="visually-hidden">match </span>
              {item.score.toFixed(2)}
            </span>
          )}
          <Quality value={item.quality} />
          <Score value={item.final_score} />
        </span>
        {excerpt && excerpt !== title && (
          <span className="row-excerpt" dir="auto">
            <Pieces text={excerpt} terms={terms} />
          </span>
        )}
        <Facts item={item} stored={stored} />
      </RowLink>
    </li>
  );
});

function Facts({ item, stored }: Pick<Props, "item" | "stored">) {
  const observation = "observation" in item ? item.observation : null;
  const created = "created_at" in item ? item.created_at : null;
  const when = item.occurred_at ?? created;
  return (
    <span className="row-facts">
      <span className="kind">{item.kind}</span>
      {item.user && <span title="The user whom it belongs to">{item.user}</span>}
      {"suspect" in item && item.suspect && <span className="rule">suspect</span>}
      {observation?.task_type && <span className="extra">{observation.task_type}</span>}
      {"run_id" in item && item.run_id && (
        <span className="name" title="The run that it was learnt in">
          <OneLine text={item.run_id} />
        </span>
      )}
      {!observation && item.kind === "observation" && item.tags.length > 0 && <span>{item.tags.join(", ")}</span>}
      {item.source && !observation && (
        <span title={item.source.uri}>
          {shortPath(item.source.uri)}
          {item.ordinal !== null && ` #${item.ordinal}`}
        </span>
      )}
      <Verdict value={observation?.verdict} />
      {"issues" in item && item.issues.length > 0 && (
        <span className="states">{[...new Set(item.issues.map(({ state }) => state))].join("; ")}</span>
      )}
      <span className="dates">
        {stored && created && when && day(created) !== day(when) && <span className="extra">stored {day(created)} · </span>}
        {when && <time dateTime={when}>{day(when)}</time>}
      </span>
    </span>
  );
}
