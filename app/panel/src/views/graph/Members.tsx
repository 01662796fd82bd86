import { type FormEvent, useId, useState } from "react";
import { useChange, useFacets, useRateMany, useTag } from "../../api/memories";
import type { GraphNode } from "../../api/types";
import { counted, day, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { Quality, Score } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { Working } from "../../parts/states";
import { linkWith } from "../../state/address";

export const AT_FIRST = 100;
/** Rows, and as many more as keys come to their end. */
const TAG_LIMIT = 100;

interface Props {
  readonly nodes: readonly GraphNode[];
  readonly listed: readonly GraphNode[];
  readonly chosen: ReadonlySet<string>;
  readonly choose: (chosen: ReadonlySet<string>) => void;
  readonly toggle: (id: string) => void;
  readonly shown: (node: GraphNode) => boolean;
  readonly current: string | null;
  readonly setCurrent: (id: string | null) => void;
  readonly rows: number;
  readonly setRows: (rows: number) => void;
  readonly onlyChosen: boolean;
  readonly setOnlyChosen: (only: boolean) => void;
}

/** The map's memories as a list, and what can be done with those that are selected. */
export function Members({
  listed, nodes, chosen, choose, toggle, shown, current, setCurrent, rows, setRows, onlyChosen, setOnlyChosen,
}: Props) {
  const present = nodes.filter(({ id }) => chosen.has(id));
  const unseen = present.filter((node) => !shown(node)).length;
  const selected = `${whole(present.length)} selected${unseen ? `, ${whole(unseen)} not shown` : ""}`;
  return (
    <section className="members" aria-label="Memories on the map">
      <div className="members-head">
        <div className="switch" role="group" aria-label="Memories in the list">
          <button type="button" aria-pressed={!onlyChosen} onClick={() => setOnlyChosen(false)}>
            Shown
          </button>
          <button type="button" aria-pressed={onlyChosen} onClick={() => setOnlyChosen(true)}>
            Selected
          </button>
        </div>
        <p role="status">{present.length ? selected : counted(listed.length, "memory", "memories")}</p>
        {present.length > 0 ? (
          <button type="button" className="quiet" title="Clear the selection (Esc)" onClick={() => choose(new Set())}>
            Clear
          </button>
        ) : (
          <button type="button" className="quiet" disabled={listed.length === 0} onClick={() => choose(new Set(listed.map(({ id }) => id)))}>
            Select all
          </button>
        )}
      </div>
      {present.length > 0 && <Deeds ids={present.map(({ id }) => id)} />}
      {listed.length === 0 ? (
        <p className="members-none">
          {onlyChosen
            ? "Nothing is selected. Draw a rectangle or a lasso on the map, or press x on a memory in the list."
            : "There are no memories in this period and these clusters."}
        </p>
      ) : (
        <ol onMouseLeave={() => setCurrent(null)}>
          {listed.slice(0, rows).map((node) => (
            <Row key={node.id} node={node} chosen={chosen.has(node.id)} current={node.id === current} toggle={() => toggle(node.id)} setCurrent={setCurrent} />
          ))}
        </ol>
      )}
      {rows < listed.length && (
        <button type="button" className="quiet more" onClick={() => setRows(listed.length)}>
          Show all {whole(listed.length)}
        </button>
      )}
    </section>
  );
}

export function lineOf(id: string): string {
  return `member-${id}`;
}

interface RowProps {
  readonly node: GraphNode;
  readonly chosen: boolean;
  readonly current: boolean;
  readonly toggle: () => void;
  readonly setCurrent: (id: string) => void;
}

function Row({ node, chosen, current, toggle, setCurrent }: RowProps) {
  const moment = node.occurred_at ?? node.created_at;
  return (
    <li
      id={lineOf(node.id)}
      className={`member ${chosen ? "chosen" : ""} ${current ? "current" : ""}`}
      onMouseEnter={() => setCurrent(node.id)}
      onFocus={() => setCurrent(node.id)}
    >
      <input type="checkbox" checked={chosen} onChange={toggle} aria-label={`Select ${node.title}`} />
      <Link className="row-title" href={linkWith({ memory: node.id })} title={node.title}>
        <OneLine text={node.title} />
      </Link>
      <span className="row-marks">
        <Quality value={node.quality} />
        <Score value={node.final_score} />
      </span>
      <span className="row-facts">
        <span className="kind">{node.kind}</span>
        <span className="facts-end">{[node.task_type, ...node.tags].filter(Boolean).join(", ")}</span>
        <time dateTime={moment}>{day(moment)}</time>
      </span>
    </li>
  );
}

/** Each acts on all that are selected, and each can be undone. */
function Deeds({ ids }: { readonly ids: readonly string[] }) {
  const rate = useRateMany();
  const tag = useTag();
  const remove = useChange("delete");
  const [draft, setDraft] = useState("");
  const known = useFacets().data?.tags ?? [];
  const tags = useId();
  const busy = rate.isPending || tag.isPending || remove.isPending;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const name = draft.trim();
    if (name !== "") tag.mutate({ ids, tag: name }, { onSuccess: () => setDraft("") });
  };
  return (
    <div className="deeds">
      <button type="button" className="thumb good" title="Rate all selected memories up" disabled={busy} onClick={() => rate.mutate({ ids, rating: 1 })}>
        <Icon name="up" label="Rate all selected memories up" />
      </button>
      <button type="button" className="thumb bad" title="Rate all selected memories down" disabled={busy} onClick={() => rate.mutate({ ids, rating: -1 })}>
        <Icon name="down" label="Rate all selected memories down" />
      </button>
      <form onSubmit={submit}>
        <input aria-label="Tag for the selected memories" placeholder="Tag" list={tags} value={draft} maxLength={TAG_LIMIT} onChange={(event) => setDraft(event.target.value)} />
        <datalist id={tags}>
          {known.map(({ value }) => (
            <option key={value} value={value} />
          ))}
        </datalist>
        <button type="submit" disabled={busy || draft.trim() === ""}>
          Tag
        </button>
      </form>
      <button type="button" className="danger" disabled={busy} title="Delete the selected memories; you can restore them" onClick={() => remove.mutate(ids)}>
        <Icon name="trash" />
        Delete
      </button>
      {rate.isPending && <progress value={rate.done} max={ids.length} aria-label="Ratings sent" />}
      {tag.isPending && <Working what="Tagging" />}
      {remove.isPending && <Working what="Deleting" />}
    </div>
  );
}
