import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Found, useMemories, useSearch } from "../../api/queries";
import { counted } from "../../parts/format";
import { Link } from "../../parts/Link";
import { type Selection, usePicking } from "../../parts/list";
import { fetchAt, Loading } from "../../parts/states";
import { Unknown } from "../../parts/Unknown";
import { changeAddress, linkWith, useAddress, wasFollowed } from "../../state/address";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { Detail } from "./Detail";
import { FilterBar } from "./FilterBar";
import { readAsked, SORTS } from "./filters";
import { List } from "./List";
import { NewNote } from "./NoteForm";
import { lineOf } from "./Row";
import { SearchBox } from "./SearchBox";
import { readTurn } from "./session/asked";
import { SessionDetail } from "./session/SessionDetail";

const MapLook = lazy(() => import("./map/MapLook").then((loaded) => ({ default: loaded.MapLook })));

/** All that is stored, as one list or as a map, and beside it what is open. */
export function Memory() {
  const { params } = useAddress();
  const mapped = params.get("look") === "map";
  const session = params.get("session");
  return (
    <div className="memory-place">
      <nav className="looks" aria-label="Looks">
        <Link href={linkWith({ look: null })} aria-current={mapped ? undefined : "page"}>
          List
        </Link>
        <Link href={linkWith({ look: "map", session: null, turn: null, note: null })} aria-current={mapped ? "page" : undefined}>
          Map
        </Link>
      </nav>
      <Unknown parameter="look" known={["map"]} instead="the list is" />
      {mapped ? (
        <Suspense fallback={<Loading what="the map" />}>
          <MapLook />
        </Suspense>
      ) : session ? (
        <div className="memories with-detail one-session">
          <OneSession key={session} id={session} turn={readTurn(params)} />
        </div>
      ) : (
        <Listed />
      )}
    </div>
  );
}

function OneSession({ id, turn }: { readonly id: string; readonly turn: number | null }) {
  useTitle("Session");
  return <SessionDetail id={id} turn={turn} onClose={() => changeAddress({ session: null, turn: null })} />;
}

const SORTED = SORTS.map(({ value }) => value.split(" "));

/** The list, what narrows it, and beside it the memory that is open. */
function Listed() {
  const { params } = useAddress();
  const asked = useMemo(() => readAsked(params), [params]);
  const searching = asked.text.trim() !== "";
  const pages = useMemories(asked, !searching);
  const found = useSearch(asked.text.trim(), asked.filters, asked.user);
  const source = searching ? found : pages;
  const orders = SORTED.filter(([sort]) => sort === (params.get("sort") ?? "created"));
  const shown = searching ? (found.data?.hits ?? []) : (pages.data?.pages.flatMap((page) => page.memories) ?? []);
  const ids = shown.map((item) => item.id);
  const [chosen, choose] = useState<Selection>(new Set());
  const picking = useRef<ReturnType<typeof usePicking>>(null);
  picking.current = usePicking(ids, chosen, choose);
  const pick = useCallback((id: string, range: boolean) => void picking.current?.(id, range), []);
  const passed = asked.memory !== null && !wasFollowed() ? shown.find((item) => item.id === asked.memory) : undefined;

  const writing = params.get("note") === "new";
  const write = () => changeAddress({ note: "new", memory: null }, { follow: true });
  const closeNote = () => changeAddress({ note: null });
  const listing = linkWith({ memory: null, note: null });
  useEffect(() => choose(new Set()), [listing]);
  const pickOpen = (range: boolean) => {
    if (asked.memory !== null) pick(asked.memory, range);
  };
  const reach = (place: number) => fetchAt(source, place, ids.length);
  const close = useListKeys(
    { parameter: "memory", ids, open: asked.memory, lineOf, reach, settled: !searching || (found.isSuccess && !found.isPlaceholderData) },
    {
      x: () => pickOpen(false),
      X: () => pickOpen(true),
      n: write,
      ...(writing ? { Escape: closeNote } : asked.memory === null && { Escape: () => choose(new Set()) }),
    },
  );
  useTitle(asked.text || "Memory");

  return (
    <div className={`memories ${asked.memory || writing ? "with-detail" : ""}`}>
      <h1 className="visually-hidden">Memory</h1>
      <section className="pane-list" aria-label="Memory">
        <div className="toolbar">
          <SearchBox text={asked.text} answer={searching ? found : null} />
          <FilterBar searching={searching} write={write} />
        </div>
        {!searching && <Unknown parameter="sort" known={SORTED.map(([sort = ""]) => sort)} instead="the newest first are" />}
        {!searching && orders.length > 0 && (
          <Unknown parameter="order" known={orders.map(([, order = ""]) => order)} instead="the newest first are" />
        )}
        <p className="visually-hidden" aria-live="polite">
          {passed && `Open: ${passed.title || passed.body}`}
        </p>
        <List
          asked={asked}
          searching={searching}
          source={source}
          items={shown}
          count={searching ? matchesOf(found) : counted(pages.data?.pages[0]?.total ?? shown.length, "memory", "memories")}
          end={searching ? (found.data?.end ?? "") : ""}
          chosen={chosen}
          choose={choose}
          pick={pick}
        />
      </section>
      {writing ? <NewNote onClose={closeNote} /> : asked.memory && <Detail key={asked.memory} id={asked.memory} onClose={close} />}
    </div>
  );
}

function matchesOf({ data }: Found): string {
  const count = data?.hits.length ?? 0;
  return data?.more ? `The best ${count} matches; there may be more` : counted(count, "match", "matches");
}
