import { useState } from "react";
import type { NodeView } from "../../../api/schema";
import { Switch } from "../../../parts/Field";
import { counted, day, whole } from "../../../parts/format";
import { Link } from "../../../parts/Link";
import type { Selection } from "../../../parts/list";
import { PickBox, SelectionHead } from "../../../parts/list";
import { Quality, Score } from "../../../parts/marks";
import { Title } from "../../../parts/text";
import { linkWith } from "../../../state/address";
import { SelectionBar } from "../SelectionBar";

export const AT_FIRST = 100;
/** Rows, and as many more as keys come to their end. */
const LISTS = [
  { value: "shown", name: "Shown" },
  { value: "selected", name: "Selected" },
] as const;

/** What the list beside the map remembers. */
export function useMembers() {
  const [chosen, choose] = useState<Selection>(new Set());
  const [onlyChosen, setOnlyChosen] = useState(false);
  const [current, setCurrent] = useState<string | null>(null);
  const [rows, setRows] = useState(AT_FIRST);
  return { chosen, choose, onlyChosen, setOnlyChosen, current, setCurrent, rows, setRows };
}

interface Props {
  readonly nodes: readonly NodeView[];
  readonly listed: readonly NodeView[];
  readonly shown: (node: NodeView) => boolean;
  readonly pick: (id: string, range: boolean) => void;
  readonly members: ReturnType<typeof useMembers>;
}

/** The map's memories as a list, and what can be done with those that are selected. */
export function Members({ nodes, listed, shown, pick, members }: Props) {
  const { chosen, choose, onlyChosen, setOnlyChosen, current, setCurrent, rows, setRows } = members;
  const present = nodes.filter(({ id }) => chosen.has(id));
  const unseen = present.filter((node) => !shown(node)).length;
  const selected = `${whole(present.length)} selected${unseen ? `, ${whole(unseen)} not shown` : ""}`;
  return (
    <section className="members" aria-label="Memories on the map">
      <div className="members-head">
        <Switch
          label="Memories in the list"
          value={onlyChosen ? "selected" : "shown"}
          set={(which) => setOnlyChosen(which === "selected")}
          options={LISTS}
        />
        <SelectionHead
          count={counted(listed.length, "memory", "memories")}
          selected={present.length > 0 ? selected : ""}
          ids={listed.map(({ id }) => id)}
          choose={choose}
        />
      </div>
      {present.length > 0 && <SelectionBar chosen={present} />}
      {listed.length === 0 ? (
        <p className="members-none">
          {onlyChosen
            ? "Nothing is selected. Draw a rectangle or a lasso on the map, or press x on a memory in the list."
            : "No memory of the map fits the filters, the search, the period and the clusters."}
        </p>
      ) : (
        <ol onMouseLeave={() => setCurrent(null)}>
          {listed.slice(0, rows).map((node) => (
            <Row
              key={node.id}
              node={node}
              chosen={chosen.has(node.id)}
              current={node.id === current}
              toggle={(range) => pick(node.id, range)}
              setCurrent={setCurrent}
            />
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
  readonly node: NodeView;
  readonly chosen: boolean;
  readonly current: boolean;
  readonly toggle: (range: boolean) => void;
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
      <PickBox title={node.title} chosen={chosen} pick={toggle} />
      <Link className="row-title" href={linkWith({ memory: node.id })} title={node.title}>
        <Title title={node.title} />
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
