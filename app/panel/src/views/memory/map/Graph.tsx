import { useCallback, useEffect, useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { FOUND, useSearch } from "../../../api/queries";
import { useRate } from "../../../api/ratings";
import type { Filters, GraphView as Found, NodeView } from "../../../api/schema";
import { capitalised, counted, exactMoment } from "../../../parts/format";
import { toggled, usePicking } from "../../../parts/list";
import { Empty, Failure, Loading } from "../../../parts/states";
import { changeAddress, useAddress } from "../../../state/address";
import { useDebounced } from "../../../state/debounced";
import { useFocusBack } from "../../../state/focus";
import { useShortcuts } from "../../../state/shortcuts";
import { type Step, useStepping } from "../../../state/stepping";
import { useTitle } from "../../../state/title";
import { Detail } from "../Detail";
import { passes, readAsked as readFiltered } from "../filters";
import { readAsked, type Span, spanChanges } from "./asked";
import { Drift } from "./Drift";
import { useGraph, useRedraw } from "./drawn";
import { ClusterLegend, SignLegend } from "./Legend";
import { MapCanvas, type Tool } from "./MapCanvas";
import { AT_FIRST, lineOf, Members, useMembers } from "./Members";
import { isShown } from "./scene";
import { Toolbar } from "./Toolbar";

const PAUSE_MILLISECONDS = 300;
/** After the slider last moved, before the address says where it stands. */

/** Memories by meaning: what is near on the map is near in meaning. */
export function Graph() {
  const { params } = useAddress();
  const asked = useMemo(() => readAsked(params), [params]);
  const graph = useGraph(asked.question);
  const redraw = useRedraw(asked.question);
  const [tool, setTool] = useState<Tool>("move");
  useShortcuts({ v: () => setTool("move"), r: () => setTool("rectangle"), l: () => setTool("lasso") });
  useTitle("Map");
  const working = redraw.isPending || graph.isPlaceholderData || graph.isPending;
  return (
    <div className={`graph ${asked.memory ? "with-detail" : ""}`}>
      <h1 className="visually-hidden">Map</h1>
      <Toolbar asked={asked} tool={tool} setTool={setTool} redraw={() => redraw.mutate()} busy={working} />
      {graph.isError ? (
        <Failure what="The map" error={graph.error} retry={graph.refetch} />
      ) : !graph.data ? (
        <Drawing />
      ) : graph.data.nodes.length === 0 && !working ? (
        <NoMap reason={graph.data.reason} kind={asked.question.kind} look={graph.refetch} />
      ) : (
        <Whole graph={graph.data} tool={tool} working={working} />
      )}
    </div>
  );
}

interface GraphProps {
  readonly graph: Found;
  readonly tool: Tool;
  readonly working: boolean;
}

function Whole({ graph, tool, working }: GraphProps) {
  const { nodes, clusters } = graph;
  const { params } = useAddress();
  const { colouring, clusters: alone, memory, span: given, text } = useMemo(() => readAsked(params), [params]);
  const [span, setSpan] = useSpan(given);
  const members = useMembers();
  const { chosen, choose: setChosen, onlyChosen, setOnlyChosen, current, rows, setRows } = members;

  const { filters, user } = useMemo(() => readFiltered(params), [params]);
  const { matches, search, elsewhere } = useMatches(text, filters, user, nodes);
  const shown = useCallback(
    (node: NodeView) => isShown(node, alone, span) && passes(node, { filters, user }) && (matches?.has(node.id) ?? true),
    [alone, span, filters, user, matches],
  );
  const visible = useMemo(() => nodes.filter(shown), [nodes, shown]);
  const listed = useMemo(() => (onlyChosen ? nodes.filter(({ id }) => chosen.has(id)) : visible), [onlyChosen, nodes, chosen, visible]);
  const choose = (ids: readonly string[], adding: boolean) => {
    setChosen(adding ? new Set([...chosen, ...ids]) : new Set(ids));
    setOnlyChosen(true);
  };
  const open = (id: string) => changeAddress({ memory: id }, { replace: memory !== null, follow: true });
  const toggleCluster = (cluster: number) => changeAddress({ cluster: [...toggled(alone, cluster)].sort().map(String) });
  const ids = useMemo(() => listed.map(({ id }) => id), [listed]);
  const pick = usePicking(ids, chosen, setChosen);
  const place = useStepping(ids, memory ?? current);
  const move = (step: Step) => {
    const next = place(step);
    const id = ids[next];
    if (!id) return;
    if (next >= rows) flushSync(() => setRows(next + AT_FIRST));
    if (memory !== null) open(id);
    else document.getElementById(lineOf(id))?.querySelector("a")?.focus();
  };
  const rate = useRate();
  const judge = (id: string, rating: 1 | -1) => rate.mutate({ ids: [id], rating, comment: "" });
  useFocusBack(memory, lineOf, ".map canvas");
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    ...(current &&
      memory === null && {
        u: () => judge(current, 1),
        d: () => judge(current, -1),
        x: () => pick(current, false),
        X: () => pick(current, true),
      }),
    Escape: () => (memory === null ? setChosen(new Set()) : changeAddress({ memory: null })),
  });
  return (
    <>
      <div className={`map-column ${working ? "stale" : ""}`}>
        {working && <Drawing />}
        {graph.computed_at && (
          <p className="muted map-age">
            Drawn on <time dateTime={graph.computed_at}>{exactMoment(graph.computed_at)}</time>
            {graph.reason && `: ${graph.reason}`}
            {matches && matches.size >= FOUND && `. Of the search: the best ${FOUND}, and those whose title has the words`}
          </p>
        )}
        {text && <Searched search={search} elsewhere={elsewhere} />}
        <MapCanvas
          nodes={nodes}
          clusters={clusters}
          shown={shown}
          colouring={colouring}
          chosen={chosen}
          current={memory ?? current}
          fitted={text === "" || isAnswered(search) ? text : null}
          tool={tool}
          choose={choose}
          open={open}
          toggle={(id) => setOnlyChosen(pick(id, false).size > 0)}
        />
        <Drift nodes={nodes} colouring={colouring} span={span} setSpan={setSpan} shown={visible.length} />
      </div>
      {memory ? (
        <Detail key={memory} id={memory} onClose={() => changeAddress({ memory: null })} />
      ) : (
        <div className="map-side">
          {colouring !== "cluster" && <SignLegend colouring={colouring} nodes={visible} />}
          <ClusterLegend clusters={clusters} alone={alone} toggle={toggleCluster} signs={colouring === "cluster"} />
          <Members nodes={nodes} listed={listed} shown={shown} pick={pick} members={members} />
        </div>
      )}
    </>
  );
}

/** The memories that the search finds by words or meaning, and those whose title has the text; null without a search. */
function useMatches(text: string, filters: Filters, user: string | null, nodes: readonly NodeView[]) {
  const search = useSearch(text, filters, user);
  const hits = search.data?.hits;
  const matches = useMemo(() => {
    if (text === "") return null;
    const lower = text.toLowerCase();
    const titled = nodes.filter(({ title }) => title.toLowerCase().includes(lower));
    return new Set([...(hits ?? []), ...titled].map(({ id }) => id));
  }, [text, nodes, hits]);
  const elsewhere = useMemo(() => {
    const present = new Set(nodes.map(({ id }) => id));
    return (hits ?? []).filter(({ id }) => !present.has(id)).length;
  }, [nodes, hits]);
  return { matches, search, elsewhere };
}

interface SearchedProps {
  readonly search: ReturnType<typeof useSearch>;
  readonly elsewhere: number;
}

/** What is not seen of a search on the map. */
function Searched({ search, elsewhere }: SearchedProps) {
  if (search.isError) return <Failure what="The search" error={search.error} retry={search.refetch} />;
  if (!isAnswered(search)) return <Loading what="what the search finds" />;
  if (elsewhere === 0) return null;
  return (
    <p className="muted map-age" role="status">
      {counted(elsewhere, "memory", "memories")} that the search found {elsewhere === 1 ? "is" : "are"} not on the map.
    </p>
  );
}

function isAnswered({ isSuccess, isPlaceholderData }: ReturnType<typeof useSearch>): boolean {
  return isSuccess && !isPlaceholderData;
}

/** The span of the address; while the slider moves, the slider's, which the address gets when it rests. */
function useSpan(given: Span | null): readonly [Span | null, (span: Span | null) => void] {
  const [draft, setDraft] = useState<{ readonly span: Span | null } | null>(null);
  const settled = useDebounced(draft, PAUSE_MILLISECONDS);
  useEffect(() => {
    if (!settled || settled !== draft) return;
    changeAddress(spanChanges(settled.span), { replace: given !== null && settled.span !== null });
    setDraft((now) => (now === settled ? null : now));
    // The address follows the slider once it rests; what the address does by itself is not answered here.
  }, [settled]);
  return [draft ? draft.span : given, useCallback((span) => setDraft({ span }), [])];
}

const SECOND = 1000;

/** A stored map is there at once; one that is to be drawn takes its time, which is counted. */
export function Drawing() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => setSeconds((count) => count + 1), SECOND);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <div className="drawing">
      <p className="loading" role="status">
        <span className="spinner" aria-hidden />
        {seconds === 0 ? "Loading the map …" : "Drawing the map …"}
      </p>
      {seconds > 0 && (
        <p className="muted">
          <span aria-hidden>{seconds} s. </span>
          Positions are computed from meaning. This takes seconds, and up to a minute the first time after an installation. The service
          stores each map.
        </p>
      )}
    </div>
  );
}

interface StatesProps {
  readonly reason: string;
  readonly kind: string;
  readonly look: () => unknown;
}

function NoMap({ reason, kind, look }: StatesProps) {
  return (
    <Empty title="There is nothing to map yet">
      {reason && <p>{capitalised(reason)}.</p>}
      <p>
        A memory appears on the map once it has a vector. Store memories with <code>priors ingest reports/</code> or{" "}
        <code>POST /api/memories</code>.
      </p>
      {kind && (
        <button type="button" onClick={() => changeAddress({ kind: null })}>
          Show all kinds
        </button>
      )}{" "}
      <button type="button" onClick={() => void look()}>
        Check again
      </button>
    </Empty>
  );
}
