import { useEffect, useMemo, useRef } from "react";
import { useMemories, useSearch } from "../../api/memories";
import { changeAddress, useAddress, wasFollowed } from "../../state/address";
import { focusLine, useFocusBack } from "../../state/focus";
import { useShortcuts } from "../../state/shortcuts";
import { type Step, useStepping } from "../../state/stepping";
import { Detail } from "./Detail";
import { FilterBar } from "./FilterBar";
import { readAsked } from "./filters";
import { lineOf, List } from "./List";
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
  const passed = asked.memory !== null && !wasFollowed() ? shown.find((item) => item.id === asked.memory) : undefined;

  const place = useStepping(ids, asked.memory);
  const move = (step: Step) => {
    const next = place(step);
    const id = ids[next];
    if (next >= ids.length - 1 && !searching && pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
    if (id) changeAddress({ memory: id }, { replace: asked.memory !== null, follow: !focusLine(lineOf(id)) });
  };
  const close = () => {
    if (asked.memory !== null) changeAddress({ memory: null });
  };
  useFocusBack(asked.memory, lineOf, ".list");
  useShortcuts({
    "/": () => search.current?.select(),
    j: () => move(1),
    k: () => move(-1),
    Escape: close,
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
        <p className="visually-hidden" aria-live="polite">
          {passed && `Open: ${passed.title || passed.body}`}
        </p>
        <List asked={asked} searching={searching} pages={pages} found={found} />
      </section>
      {asked.memory ? (
        <Detail key={asked.memory} id={asked.memory} onClose={close} />
      ) : (
        <aside className="pane-detail nothing-open" aria-label="Memory">
          <p>
            Select a memory to read and rate it. Press <kbd>j</kbd> or <kbd>k</kbd> to move, <kbd>u</kbd> or{" "}
            <kbd>d</kbd> to rate.
          </p>
        </aside>
      )}
    </div>
  );
}
