import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { capitalised } from "./format";
import { Failure, Loading } from "./states";

interface Props {
  /** The word for what is listed, in lower case and in the plural. */
  readonly name: string;
  readonly query: Pick<UseInfiniteQueryResult, "data" | "error" | "isError" | "isPending" | "isPlaceholderData" | "refetch">;
  /** The explanation of a list that has no item even without filters; false for another list. */
  readonly nothing: ReactNode;
  /** The filters; they stay if the list cannot be loaded, so that the reader can change them. */
  readonly toolbar?: ReactNode;
  readonly children: ReactNode;
}

/** A list beside which one of its items is open. */
export function ListPane({ name, query, nothing, toolbar, children }: Props) {
  const label = capitalised(name);
  const failed = query.isError && !query.data;
  // The heading stands outside the section, which a narrow screen hides beside an open item.
  return (
    <>
      <h1 className="visually-hidden">{label}</h1>
      <section className="pane-list" aria-label={label}>
        {query.isPending ? (
          <Loading what={name} />
        ) : (
          (!failed && nothing) || (
            <div className={`list ${query.isPlaceholderData ? "stale" : ""}`} tabIndex={-1}>
              {toolbar && <div className="toolbar">{toolbar}</div>}
              {failed ? <Failure what={`The list of ${name}`} error={query.error} retry={query.refetch} /> : children}
            </div>
          )
        )}
      </section>
    </>
  );
}
