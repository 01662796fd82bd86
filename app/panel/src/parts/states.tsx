/** Stand-ins for the content of a view; each says what to do. */

import type { UseInfiniteQueryResult, UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden />
      Loading {what} …
    </p>
  );
}

/** A change that takes longer than a moment: seen after 100 ms, so that a quick one does not flicker. */
export function Working({ what }: { readonly what: string }) {
  return (
    <span className="working" role="status">
      <span className="spinner" aria-hidden />
      {what} …
    </span>
  );
}

export type Paged = Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;

interface MoreProps {
  readonly pages: Paged;
  /** Asks as soon as the button comes into view. One that Tab has reached does not, so that the next Tab leaves the list. */
  readonly seen?: boolean;
}

/** Asks for the next page of a list that has one. */
export function More({ pages: { hasNextPage, isFetchingNextPage, fetchNextPage }, seen = false }: MoreProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const place = button.current;
    if (!seen || !place || isFetchingNextPage) return undefined;
    const watching = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting && document.activeElement !== place) void fetchNextPage();
    });
    watching.observe(place);
    return () => watching.disconnect();
  }, [seen, isFetchingNextPage, fetchNextPage]);
  if (!hasNextPage) return null;
  return (
    <button ref={button} type="button" className="quiet more" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
      {isFetchingNextPage ? "Loading …" : "Show more"}
    </button>
  );
}

/** Fetches the next page once keys come to the last of the lines that are there. */
export function fetchAt({ hasNextPage, isFetchingNextPage, fetchNextPage }: Paged, place: number, lines: number): void {
  if (place >= lines - 1 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
}

interface AnsweredProps<T> {
  readonly query: Pick<UseQueryResult<T>, "data" | "isError" | "error" | "refetch">;
  /** The word for what is asked for, in lower case. */
  readonly name: string;
  readonly children: (answer: T) => ReactNode;
}

/** What was asked for, once it is there; else that it is loaded, or why it cannot be shown. */
export function Answered<T>({ query: { data, isError, error, refetch }, name, children }: AnsweredProps<T>) {
  if (data !== undefined) return children(data);
  return isError ? <Failure what={`The ${name}`} error={error} retry={refetch} /> : <Loading what={`the ${name}`} />;
}

interface FailureProps {
  readonly what: string;
  readonly error: unknown;
  readonly retry: () => unknown;
}

export function Failure({ what, error, retry }: FailureProps) {
  return (
    <div className="empty problem" role="alert">
      <h2>{what} cannot be shown</h2>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <button type="button" onClick={() => void retry()}>
        Try again
      </button>
    </div>
  );
}

/** The same in one line, for a part of a pane. */
export function Unshown({
  what,
  query: { isError, error },
}: {
  readonly what: string;
  readonly query: Pick<UseQueryResult, "isError" | "error">;
}) {
  if (!isError) return null;
  return (
    <p className="problem">
      {what} cannot be shown: {error?.message}
    </p>
  );
}

interface FoldedProps {
  readonly label: ReactNode;
  readonly className?: string;
  readonly children: ReactNode;
}

/** A part that is asked for once it is unfolded. */
export function Folded({ label, className, children }: FoldedProps) {
  const [open, setOpen] = useState(false);
  return (
    <details className={className} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {open && children}
    </details>
  );
}
