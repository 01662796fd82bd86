import { useEffect, useMemo, useRef } from "react";
import { useMemories, useSearch } from "../../api/memories";
import { changeAddress, useAddress } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { Detail } from "./Detail";
import { FilterBar } from "./FilterBar";
import { readAsked } from "./filters";
import { List } from "./List";
import { SearchBox } from "./SearchBox";

/** The list, what narrows it, and beside it the memory that is open. */
export function Memories() {
  const { params } = useAddress();
  const asked = useMemo(() => readAsked(params), [params]);
  const searching = asked.text.trim() !== "";
  const pages = useMemories(asked, !searching);
  const found = useSearch(asked.text.trim(), asked.filters);
  const search = useRef<HTMLInputElement>(null);
  const shown = searching ? (found.data?.hits ?? []) : (pages.data?.pages.flatMap((page) => page.memories) ?? []);
  const ids = shown.map((item) => item.id);

  const open = (id: string | undefined) => {
    if (id) changeAddress({ memory: id }, { replace: asked.memory !== null });
  };
  const move = (step: 1 | -1) => {
    const place = asked.memory === null ? -1 : ids.indexOf(asked.memory);
    const next = place === -1 ? 0 : place + step;
    if (next >= ids.length - 1 && !searching && pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
    open(ids[next]);
  };
  const close = () => {
    if (asked.memory !== null) changeAddress({ memory: null });
  };
  useShortcuts({
    "/": () => search.current?.select(),
    j: () => move(1),
    k: () => move(-1),
    Escape: () => (document.activeElement === search.current ? search.current?.blur() : close()),
  });
  useEffect(() => {
    document.title = asked.text ? `${asked.text} · Priors` : "Memories · Priors";
  }, [asked.text]);

  return (
    <div className={`memories ${asked.memory ? "with-detail" : ""}`}>
      <section className="pane-list" aria-label="Memories">
        <h1 className="visually-hidden">Memories</h1>
        <div className="toolbar">
          <SearchBox input={search} text={asked.text} answer={searching ? found : null} />
          <FilterBar searching={searching} />
        </div>
        <List asked={asked} searching={searching} pages={pages} found={found} />
      </section>
      {asked.memory ? (
        <Detail key={asked.memory} id={asked.memory} onClose={close} />
      ) : (
        <aside className="pane-detail nothing-open" aria-label="Memory">
          <p>
            Select a memory to read and rate it. <kbd>j</kbd> <kbd>k</kbd> move, <kbd>u</kbd> <kbd>d</kbd> rate.
          </p>
        </aside>
      )}
    </div>
  );
}
