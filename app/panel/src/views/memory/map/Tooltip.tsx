import type { Cluster, NodeView } from "../../../api/schema";
import { day } from "../../../parts/format";
import { Quality, Score } from "../../../parts/marks";
import { OneLine } from "../../../parts/text";
import type { Place, Size } from "./scene";

const WIDTH = 280;
const GAP = 14;

interface Props {
  readonly node: NodeView;
  readonly at: Place;
  readonly size: Size;
  readonly clusters: readonly Cluster[];
}

/** Names the memory under the pointer, on the side where there is room. */
export function Tooltip({ node, at: [x, y], size, clusters }: Props) {
  const terms = clusters.find(({ id }) => id === node.cluster)?.terms ?? [];
  const moment = node.occurred_at ?? node.created_at;
  const left = Math.max(0, Math.min(x + GAP, size.width - WIDTH));
  const place = y > size.height / 2 ? { bottom: size.height - y + GAP } : { top: y + GAP };
  return (
    <div className="tooltip" role="tooltip" style={{ left, ...place }}>
      <p className="tooltip-title">
        <OneLine text={node.title} />
      </p>
      <p className="row-facts">
        <span className="kind">{node.kind}</span>
        {node.task_type && <span>{node.task_type}</span>}
        <time dateTime={moment}>{day(moment)}</time>
        <Quality value={node.quality} />
        <Score value={node.final_score} />
      </p>
      {node.tags.length > 0 && <p className="muted">{node.tags.join(", ")}</p>}
      {terms.length > 0 && <p className="muted">{terms.join(" · ")}</p>}
    </div>
  );
}
