import type { UseInfiniteQueryResult, UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { FOUND } from "../../api/memories";
import type { Hit, Memory, MemoryPage, SearchAnswer } from "../../api/types";
import { counted, day, shortPath } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Quality, Score, Verdict } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { Empty, Failure, Loading } from "../../parts/states";
import { changeAddress, linkWith } from "../../state/address";
import { focusTitle } from "../../state/focus";
import { type Asked, NO_FILTERS } from "./filters";

export type Pages = UseInfiniteQueryResult<{ readonly pages: readonly MemoryPage[] }>;

interface Props {
  readonly asked: Asked;
  readonly searching: boolean;
  readonly pages: Pages;
  readonly found: UseQueryResult<SearchAnswer>;
}

export function List({ asked, searching, pages, found }: Props) {
  const source = searching ? found : pages;
  if (source.isError) return <Failure what="The list" error={source.error} retry={source.refetch} />;
  if (source.isPending) return <Loading what="memories" />;
  const items: readonly (Hit | Memory)[] = searching
    ? (found.data?.hits ?? [])
    : (pages.data?.pages.flatMap((page) => page.memories) ?? []);
  if (items.length === 0) return <Nothing asked={asked} searching={searching} />;
  return (
    <div className={`list ${source.isPlaceholderData ? "stale" : ""}`} tabIndex={-1}>
      <p className="list-count" role="status">
        {searching
          ? items.length < FOUND ? counted(items.length, "match", "matches") : `Best ${FOUND} matches`
          : counted(pages.data?.pages[0]?.total ?? items.length, "memory", "memories")}
      </p>
      <ol>
        {items.map((item) => (
          <Row key={item.id} item={item} open={item.id === asked.memory} stored={!searching && asked.sort === "created"} />
        ))}
      </ol>
      {!searching && <More pages={pages} />}
    </div>
  );
}

export function lineOf(id: string): string {
  return `memory-${id}`;
}

interface RowProps {
  readonly item: Hit | Memory;
  readonly open: boolean;
  /** Whether the list is in the order of storing: the date is then of that, else of the event. */
  readonly stored: boolean;
}

function Row({ item, open, stored }: RowProps) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (open) row.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const observation = "observation" in item ? item.observation : null;
  const created = "created_at" in item ? item.created_at : null;
  const when = stored ? created : (item.occurred_at ?? created);
  return (
    <li ref={row} id={lineOf(item.id)}>
      <Link className="row" href={linkWith({ memory: item.id })} aria-current={open ? "true" : undefined} onClick={open ? focusTitle : undefined}>
        <span className="row-title">
          <OneLine text={item.title || item.body} />
        </span>
        <span className="row-marks">
          {"explain" in item && <Match value={item.score} />}
          <Quality value={item.quality} />
          <Score value={item.final_score} />
        </span>
        <span className="row-facts">
          <span className="kind">{item.kind}</span>
          {observation?.task_type && <span>{observation.task_type}</span>}
          {!observation && item.kind === "observation" && item.tags.length > 0 && <span>{item.tags.join(", ")}</span>}
          {item.source && !observation && <span title={item.source.uri}>{shortPath(item.source.uri)}</span>}
          <Verdict value={observation?.verdict} />
          {when && (
            <time dateTime={when} title={when === created ? "Storage date" : "Event date"}>
              {day(when)}
            </time>
          )}
        </span>
      </Link>
    </li>
  );
}

function Match({ value }: { readonly value: number }) {
  return (
    <span className="match" title={`Match ${value.toFixed(2)}: relevance, evaluator's score, ratings and recency combined`}>
      <span className="visually-hidden">match </span>
      {value.toFixed(2)}
    </span>
  );
}

/** The next page comes as its place comes into view; the button is for those who do not scroll. */
function More({ pages }: { readonly pages: Pages }) {
  const button = useRef<HTMLButtonElement>(null);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  useEffect(() => {
    const place = button.current;
    if (!place) return undefined;
    const watching = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) void fetchNextPage();
    });
    watching.observe(place);
    return () => watching.disconnect();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  if (isFetchingNextPage) return <Loading what="more memories" />;
  if (!hasNextPage) return null;
  return (
    <button ref={button} type="button" className="quiet more" onClick={() => void fetchNextPage()}>
      Show more
    </button>
  );
}

function Nothing({ asked, searching }: { readonly asked: Asked; readonly searching: boolean }) {
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
      <p>
        Ingest a folder of reports with <code>priors ingest reports/</code>, or store memories with{" "}
        <code>POST /api/memories</code>.
      </p>
    </Empty>
  );
}
