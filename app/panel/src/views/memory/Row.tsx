import { memo, type ReactNode, useEffect, useRef } from "react";
import type { HitView, MemoryView, NodeView } from "../../api/schema";
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

type Told = Pick<NodeView, "kind" | "user" | "task_type" | "run_id" | "source" | "occurred_at"> & Partial<Pick<NodeView, "tags">>;

interface Apart extends Told {
  readonly ordinal?: number | null;
  readonly created_at: string | null;
  readonly stored?: boolean;
  readonly children?: ReactNode;
}

/** What tells a memory apart from others with its title. */
export function Apart(given: Apart) {
  const { kind, user, occurred_at, task_type, run_id, source, ordinal = null, tags = [], created_at: created, stored, children } = given;
  const when = occurred_at ?? created;
  return (
    <span className="row-facts">
      <span className="kind">{kind}</span>
      {user && <span title="The user whom it belongs to">{user}</span>}
      {task_type && <span className="extra">{task_type}</span>}
      {run_id && (
        <span className="name" title="The run that it was learnt in">
          <OneLine text={run_id} />
        </span>
      )}
      {tags.length > 0 && <span>{tags.join(", ")}</span>}
      {source && kind !== "observation" && (
        <span title={source}>
          {shortPath(source)}
          {ordinal !== null && ` #${ordinal}`}
        </span>
      )}
      {children}
      <span className="dates">
        {stored && created && when && day(created) !== day(when) && <span className="extra">stored {day(created)} · </span>}
        {when && <time dateTime={when}>{day(when)}</time>}
      </span>
    </span>
  );
}

function Facts({ item, stored }: Pick<Props, "item" | "stored">) {
  const observation = "observation" in item ? item.observation : null;
  return (
    <Apart
      {...item}
      task_type={observation?.task_type ?? ""}
      run_id={"run_id" in item ? item.run_id : null}
      source={item.source?.uri ?? ""}
      tags={!observation && item.kind === "observation" ? item.tags : []}
      created_at={"created_at" in item ? item.created_at : null}
      stored={stored}
    >
      {"suspect" in item && item.suspect && <span className="rule">suspect</span>}
      <Verdict value={observation?.verdict} />
      {"issues" in item && item.issues.length > 0 && (
        <span className="states">{[...new Set(item.issues.map(({ state }) => state))].join("; ")}</span>
      )}
    </Apart>
  );
}
