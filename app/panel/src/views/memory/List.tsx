import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import { useUnknownWorkspace } from "../../api/queries";
import type { HitView, MemoryView } from "../../api/schema";
import { termsOf } from "../../parts/excerpt";
import { type Selection, SelectionHead } from "../../parts/list";
import { Empty, Failure, Loading, More } from "../../parts/states";
import { changeAddress } from "../../state/address";
import { type Asked, NO_FILTERS } from "./filters";
import { Row } from "./Row";
import { SelectionBar } from "./SelectionBar";

interface Props {
  readonly asked: Asked;
  readonly searching: boolean;
  readonly source: UseInfiniteQueryResult<unknown>;
  readonly items: readonly (HitView | MemoryView)[];
  readonly count: string;
  /** What is said where the list ends before its matter does. */
  readonly end: string;
  readonly chosen: Selection;
  readonly choose: (chosen: Selection) => void;
  readonly pick: (id: string, range: boolean) => void;
}

export function List({ asked, searching, source, items, count, end, chosen, choose, pick }: Props) {
  const terms = useMemo(() => (searching ? termsOf(asked.text) : []), [searching, asked.text]);
  if (source.isError) return <Failure what="The list of memories" error={source.error} retry={source.refetch} />;
  if (source.isPending) return <Loading what="memories" />;
  if (items.length === 0) return <Nothing asked={asked} searching={searching} />;
  const stop = (items.find(({ id }) => id === asked.memory) ?? items[0])?.id;
  const present = items.filter(({ id }) => chosen.has(id));
  return (
    <div className={`list ${source.isPlaceholderData ? "stale" : ""}`} tabIndex={-1}>
      <SelectionHead count={count} selected={present.length} ids={items.map(({ id }) => id)} choose={choose} />
      {present.length > 0 && <SelectionBar chosen={present} />}
      <ol>
        {items.map((item) => (
          <Row
            key={item.id}
            item={item}
            stop={item.id === stop}
            open={item.id === asked.memory}
            stored={!searching && asked.sort === "created"}
            terms={terms}
            chosen={chosen.has(item.id)}
            pick={pick}
          />
        ))}
      </ol>
      <More pages={source} seen />
      {end && !source.hasNextPage && <p className="muted kept">{end}</p>}
    </div>
  );
}

function Nothing({ asked, searching }: { readonly asked: Asked; readonly searching: boolean }) {
  const unknown = useUnknownWorkspace();
  const filtered = Object.values(asked.filters).some((value) => (Array.isArray(value) ? value.length > 0 : value !== ""));
  if (searching || filtered) {
    return (
      <Empty title={searching ? "No memory matches this search" : "No memory matches these filters"}>
        <p>{searching ? "Try other words or fewer filters." : "Remove a filter to see more memories."}</p>
        <button type="button" onClick={() => changeAddress({ ...NO_FILTERS, q: null })}>
          Show all memories
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="This workspace has no memories yet">
      {unknown && <p>There is no workspace named {unknown}. Check the name, or choose another above.</p>}
      <p>
        Ingest a folder of reports with <code>priors ingest reports/</code>, or store memories with <code>POST /api/memories</code>.
      </p>
    </Empty>
  );
}
