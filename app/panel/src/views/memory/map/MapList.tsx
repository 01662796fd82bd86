import { symbol } from "d3-shape";
import type { Cluster, NodeView } from "../../../api/schema";
import { counted, whole } from "../../../parts/format";
import { PickBox, RowLink, type Selection, SelectionHead } from "../../../parts/list";
import { Quality, Score } from "../../../parts/marks";
import { Title } from "../../../parts/text";
import { linkWith } from "../../../state/address";
import { Apart, lineOf } from "../Row";
import { SelectionBar } from "../SelectionBar";
import { markOf } from "./paint";

export const AT_ONCE = 100;
/** Rows, and as many more as somebody asks for or as keys come to their end. */

interface Props {
  readonly listed: readonly NodeView[];
  /** The number of memories on the map. */
  readonly total: number;
  readonly chosen: Selection;
  readonly choose: (chosen: Selection) => void;
  readonly pick: (id: string, range: boolean) => void;
  readonly rows: number;
  readonly more: () => void;
}

/** The memories that the map shows, or those in the rectangle, and what can be done with those that are selected. */
export function MapList({ listed, total, chosen, choose, pick, rows, more }: Props) {
  const present = listed.filter(({ id }) => chosen.has(id));
  const all = counted(total, "memory", "memories");
  return (
    <section className="list" aria-label="Memories on the map" tabIndex={-1}>
      <SelectionHead
        count={listed.length === total ? all : `${whole(listed.length)} of ${all}`}
        selected={present.length}
        ids={listed.map(({ id }) => id)}
        choose={choose}
      />
      {present.length > 0 && <SelectionBar chosen={present} />}
      {listed.length === 0 && <p className="muted none">No memory of the map fits the search, the filters and the clusters.</p>}
      <ol>
        {listed.slice(0, rows).map((node, place) => (
          <li key={node.id} id={lineOf(node.id)} className={`picked-row ${chosen.has(node.id) ? "chosen" : ""}`}>
            <PickBox title={node.title} chosen={chosen.has(node.id)} stop={place === 0} pick={(range) => pick(node.id, range)} />
            <RowLink href={linkWith({ memory: node.id })} open={false} stop={place === 0}>
              <span className="row-title">
                <Title title={node.title} />
              </span>
              <span className="row-marks">
                <Quality value={node.quality} />
                <Score value={node.final_score} />
              </span>
              <Apart {...node} />
            </RowLink>
          </li>
        ))}
      </ol>
      {rows < listed.length && (
        <button type="button" className="quiet more" onClick={more}>
          Show more
        </button>
      )}
    </section>
  );
}

interface LegendProps {
  readonly clusters: readonly Cluster[];
  readonly alone: ReadonlySet<number>;
  readonly toggle: (cluster: number) => void;
}

/** Each cluster with its mark and the words that set it apart; pressing one shows it alone. */
export function ClusterLegend({ clusters, alone, toggle }: LegendProps) {
  return (
    <ul className="map-legend" aria-label="Clusters">
      {clusters.map(({ id, terms, size }) => {
        const { colour, shape } = markOf(id);
        return (
          <li key={id}>
            <button type="button" className="quiet" aria-pressed={alone.has(id)} title="Show only this cluster" onClick={() => toggle(id)}>
              <svg className="sign" viewBox="-8 -8 16 16" width="16" height="16" aria-hidden>
                <path d={symbol(shape, 60)() ?? ""} style={{ fill: `var(${colour})` }} />
              </svg>
              <span className="terms">{terms.length ? terms.join(" · ") : `Cluster ${id + 1}`}</span>
              <span className="muted">{whole(size)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
