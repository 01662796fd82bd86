import { useMemo, useState } from "react";
import { type Found, MOST_FOUND, useSearch } from "../../../api/queries";
import type { GraphView, NodeView } from "../../../api/schema";
import { capitalised, exactMoment, whole } from "../../../parts/format";
import { Icon } from "../../../parts/Icon";
import { type Selection, toggled, usePicking } from "../../../parts/list";
import { Empty, Failure } from "../../../parts/states";
import { changeAddress, useAddress } from "../../../state/address";
import { useListKeys } from "../../../state/stepping";
import { useTitle } from "../../../state/title";
import { Detail } from "../Detail";
import { Filtering } from "../FilterBar";
import { type Asked, passes, readAsked } from "../filters";
import { lineOf } from "../Row";
import { SearchBox } from "../SearchBox";
import { isFull, MOST, useGraph } from "./drawn";
import { MapCanvas } from "./MapCanvas";
import { AT_ONCE, ClusterLegend, MapList } from "./MapList";
import { isWithin } from "./scene";

/** The same list by meaning: what is near on the map is near in meaning. */
export function MapLook() {
  const { params } = useAddress();
  const asked = useMemo(() => readAsked(params), [params]);
  const query = asked.text.trim();
  const search = useSearch(query, asked.filters, asked.user, MOST_FOUND);
  const graph = useGraph(asked.filters);
  useTitle("Map");
  return (
    <div className={`graph ${asked.memory ? "with-detail" : ""}`}>
      <h1 className="visually-hidden">Map</h1>
      <div className="toolbar">
        <SearchBox text={asked.text} answer={query ? search : null} />
        <Filtering>
          <button
            type="button"
            className="quiet"
            disabled={graph.working}
            title="Compute a new layout: positions change"
            onClick={() => graph.redraw()}
          >
            <Icon name="restore" />
            Redraw
          </button>
        </Filtering>
      </div>
      {graph.isError ? (
        <Failure what="The map" error={graph.error} retry={graph.refetch} />
      ) : !graph.data ? (
        <Drawing />
      ) : graph.data.nodes.length === 0 && !graph.working ? (
        <Empty title="There is nothing to map yet">
          <p>{capitalised(graph.data.reason)}. A memory appears on the map once it has a vector.</p>
        </Empty>
      ) : (
        <Drawn asked={asked} graph={graph.data} search={search} working={graph.working} />
      )}
    </div>
  );
}

interface DrawnProps {
  readonly asked: Asked;
  readonly graph: GraphView;
  readonly search: Found;
  readonly working: boolean;
}

const NOTHING: Selection = new Set();

function Drawn({ asked, graph, search, working }: DrawnProps) {
  const { nodes, clusters, computed_at, reason } = graph;
  const { params } = useAddress();
  const { memory } = asked;
  const query = asked.text.trim();
  const alone = useMemo(() => new Set(params.getAll("cluster").map(Number)), [params]);
  const [rows, setRows] = useState(AT_ONCE);
  const [{ chosen, brushed }, select] = useState({ chosen: NOTHING, brushed: NOTHING });

  const visible = useMemo(() => {
    const found = query === "" ? nodes : matching(nodes, query, search.data);
    const among = found.filter(({ cluster }) => alone.size === 0 || alone.has(cluster));
    return among.filter((node) => isWithin(node, asked.filters) && passes(node, asked));
  }, [nodes, query, search.data, alone, asked]);
  const inBrush = useMemo(() => visible.filter(({ id }) => brushed.has(id)), [visible, brushed]);
  const listed = inBrush.length > 0 ? inBrush : visible;
  const ids = useMemo(() => listed.map(({ id }) => id), [listed]);

  const choose = (next: Selection) => select({ chosen: next, brushed: next.size > 0 ? brushed : NOTHING });
  const brush = (inside: readonly string[], adding: boolean) => {
    const next = new Set(adding ? [...chosen, ...inside] : inside);
    select({ chosen: next, brushed: next });
  };
  const pick = usePicking(ids, chosen, choose);
  const answered = search.isSuccess && !search.isPlaceholderData;
  const close = useListKeys(
    {
      parameter: "memory",
      ids,
      open: memory,
      lineOf,
      reach: (place) => setRows(Math.max(rows, place + AT_ONCE)),
      settled: query === "" || answered,
    },
    {
      ...(memory !== null && { x: () => pick(memory, false), X: () => pick(memory, true) }),
      ...(memory === null && { Escape: () => choose(NOTHING) }),
    },
  );

  return (
    <>
      <div className={`map-column ${working ? "stale" : ""}`}>
        {working && <Drawing />}
        <p className="muted map-age" role="status">
          {computed_at && `Drawn on ${exactMoment(computed_at)}${reason && `: ${reason}`}. `}
          {isFull(graph) && `At most the newest ${whole(MOST)} memories are on the map. `}
          {query && answered && unseenOf(nodes, search.data)}
        </p>
        {query && search.isError && <Failure what="The search" error={search.error} retry={search.refetch} />}
        <MapCanvas
          nodes={nodes}
          visible={visible}
          clusters={clusters}
          chosen={chosen}
          current={memory}
          fitted={query === "" || answered ? query : null}
          brush={brush}
          toggle={(id) => pick(id, false)}
          open={(id) => changeAddress({ memory: id }, { replace: memory !== null, follow: true })}
        />
      </div>
      {memory ? (
        <Detail key={memory} id={memory} onClose={close} />
      ) : (
        <div className="map-side">
          <ClusterLegend
            clusters={clusters}
            alone={alone}
            toggle={(cluster) => changeAddress({ cluster: [...toggled(alone, cluster)].sort().map(String) })}
          />
          <MapList
            listed={listed}
            total={nodes.length}
            chosen={chosen}
            choose={choose}
            pick={pick}
            rows={rows}
            more={() => setRows(rows + AT_ONCE)}
          />
        </div>
      )}
    </>
  );
}

/** The memories that the search finds by words or meaning, best first, and those whose title has the words. */
function matching(nodes: readonly NodeView[], query: string, found: Found["data"]): readonly NodeView[] {
  const places = new Map(nodes.map((node) => [node.id, node]));
  const hits = (found?.hits ?? []).flatMap(({ id }) => places.get(id) ?? []);
  const words = query.toLowerCase().split(/\s+/);
  const titled = nodes.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  return [...new Set([...hits, ...titled])];
}

/** What is not seen of a search on the map. */
function unseenOf(nodes: readonly NodeView[], found: Found["data"]): string {
  const hits = found?.hits ?? [];
  const present = new Set(nodes.map(({ id }) => id));
  const elsewhere = hits.filter(({ id }) => !present.has(id)).length;
  const others = `${found?.more ? `${found.end} ` : ""}Those whose title has the words are shown, too. `;
  return elsewhere > 0 ? `${others}Found, and not on the map: ${whole(elsewhere)}.` : others;
}

/** A stored map is there at once; one that is to be drawn takes its time, which is said after a moment. */
function Drawing() {
  return (
    <p className="drawing loading" role="status">
      <span className="spinner" aria-hidden />
      Drawing the map … This takes seconds, and up to a minute the first time after an installation. The service stores each map.
    </p>
  );
}
