import { symbol } from "d3-shape";
import type { Cluster, NodeView } from "../../../api/schema";
import { whole } from "../../../parts/format";
import { type Colouring, clusterMark, dashesOf, type Mark, qualityMark, scoreMark } from "./marks";
import type { Line } from "./scene";

interface Props {
  readonly clusters: readonly Cluster[];
  readonly alone: ReadonlySet<number>;
  readonly toggle: (cluster: number) => void;
  /** True if the map has the clusters' marks. */
  readonly signs: boolean;
}

/** Each cluster with the words that set it apart; pressing one shows it alone. */
export function ClusterLegend({ clusters, alone, toggle, signs }: Props) {
  return (
    <ul className="map-legend" aria-label="Clusters">
      {clusters.map(({ id, terms, size }) => (
        <li key={id}>
          <button type="button" className="quiet" aria-pressed={alone.has(id)} title="Show only this cluster" onClick={() => toggle(id)}>
            {signs && <Sign mark={clusterMark(id)} />}
            <span className="terms">{terms.length ? terms.join(" · ") : `Cluster ${id + 1}`}</span>
            <span className="muted">{whole(size)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

interface Entry {
  readonly name: string;
  readonly mark: Mark;
  readonly holds: (node: NodeView) => boolean;
}

const SIGNS: Readonly<Record<Exclude<Colouring, "cluster">, readonly Entry[]>> = {
  quality: [
    { name: "Rated up", mark: qualityMark(1), holds: ({ quality }) => quality > 0 },
    { name: "Rated down", mark: qualityMark(-1), holds: ({ quality }) => quality < 0 },
    { name: "Neutral or not rated", mark: qualityMark(0), holds: ({ quality }) => quality === 0 },
  ],
  score: [
    { name: "Score of 7 or more", mark: scoreMark(10), holds: ({ final_score }) => scoreMark(final_score) === scoreMark(10) },
    { name: "Score from 5 to 7", mark: scoreMark(5), holds: ({ final_score }) => scoreMark(final_score) === scoreMark(5) },
    { name: "Score below 5", mark: scoreMark(0), holds: ({ final_score }) => scoreMark(final_score) === scoreMark(0) },
    { name: "No score", mark: scoreMark(null), holds: ({ final_score }) => final_score === null },
  ],
};

interface SignProps {
  readonly colouring: Exclude<Colouring, "cluster">;
  readonly nodes: readonly NodeView[];
}

/** The meaning of the marks, with the number of memories that have each. */
export function SignLegend({ colouring, nodes }: SignProps) {
  return (
    <ul className="map-legend" aria-label={colouring === "quality" ? "Quality legend" : "Score legend"}>
      {SIGNS[colouring].map(({ name, mark, holds }) => (
        <li key={name}>
          <Sign mark={mark} />
          <span className="terms">{name}</span>
          <span className="muted">{whole(nodes.filter(holds).length)}</span>
        </li>
      ))}
    </ul>
  );
}

const RELATIONS: Readonly<Record<string, string>> = {
  next: "Next in the source",
  derived_from: "Derived from",
  supersedes: "Supersedes",
  mentions: "Mentions",
  same_entity: "Rare name in common",
  similar: "Similar",
  same_task: "Same task",
};

/** The lines on the map, by what they mean. */
export function LinkLegend({ lines, beyond }: { readonly lines: readonly Line[]; readonly beyond: number }) {
  if (lines.length + beyond === 0) return null;
  return (
    <ul className="line-legend" aria-label="Links">
      {Object.entries(RELATIONS).map(([relation, name]) => {
        const count = lines.filter((line) => line.relation === relation).length;
        return count === 0 ? null : (
          <li key={relation}>
            <svg className="sign" viewBox="0 0 28 8" width="28" height="8" aria-hidden>
              <path d="M0 4H28" strokeDasharray={dashesOf(relation).join(" ")} />
            </svg>
            {name} {whole(count)}
          </li>
        );
      })}
      {beyond > 0 && <li>Not shown {whole(beyond)}</li>}
    </ul>
  );
}

function Sign({ mark }: { readonly mark: Mark }) {
  return (
    <svg className="sign" viewBox="-8 -8 16 16" width="16" height="16" aria-hidden>
      <path d={symbol(mark.shape, mark.area * 1.4)() ?? ""} style={{ fill: `var(${mark.colour})`, opacity: mark.opacity }} />
    </svg>
  );
}
