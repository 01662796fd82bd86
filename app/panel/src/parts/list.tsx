/** A list beside which one of its items is open: its pane, its lines, and what is selected in it. */

import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { type ReactNode, useRef } from "react";
import { focusTitle } from "../state/focus";
import { capitalised, day, whole } from "./format";
import { Link } from "./Link";
import { Failure, Loading } from "./states";
import { OneLine } from "./text";

interface ListPaneProps {
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
export function ListPane({ name, query, nothing, toolbar, children }: ListPaneProps) {
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

interface RowLinkProps {
  readonly href: string;
  readonly open: boolean;
  /** False where Tab reaches another line of the list. */
  readonly stop?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

/** The link of a line of a list, which opens its pane; where it is open, it moves the focus there. */
export function RowLink({ href, open, stop, className = "row", children }: RowLinkProps) {
  return (
    <Link
      className={className}
      tabIndex={stop === false ? -1 : undefined}
      href={href}
      aria-current={open ? "true" : undefined}
      onClick={open ? focusTitle : undefined}
    >
      {children}
    </Link>
  );
}

interface ListRowProps {
  /** The id of the line, by which keys find it. */
  readonly line: string;
  readonly href: string;
  readonly open: boolean;
  readonly stop?: boolean;
  readonly title: string;
  readonly marks?: ReactNode;
  readonly excerpt?: ReactNode;
  readonly facts: ReactNode;
  readonly when?: string | null;
}

/** A line of a list: a title with its marks, what it says, and the facts that tell it from others. */
export function ListRow({ line, href, open, stop, title, marks, excerpt, facts, when }: ListRowProps) {
  return (
    <li id={line}>
      <RowLink href={href} open={open} {...(stop === undefined ? {} : { stop })}>
        <span className="row-title">
          <OneLine text={title} />
        </span>
        <span className="row-marks">{marks}</span>
        {excerpt && (
          <span className="row-excerpt" dir="auto">
            {excerpt}
          </span>
        )}
        <span className="row-facts">
          {facts}
          {when && (
            <span className="dates">
              <time dateTime={when}>{day(when)}</time>
            </span>
          )}
        </span>
      </RowLink>
    </li>
  );
}

export type Selection = ReadonlySet<string>;

/** The selection with this one in it if it was not, without it if it was. */
export function toggled<T>(chosen: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const next = new Set(chosen);
  if (!next.delete(one)) next.add(one);
  return next;
}

/** The selection with everything from one item of a list to another. */
function withRange(chosen: Selection, ids: readonly string[], from: string, to: string): Selection {
  const [first = 0, last = 0] = [ids.indexOf(from), ids.indexOf(to)].sort((one, other) => one - other);
  return new Set([...chosen, ...ids.slice(Math.max(0, first), last + 1)]);
}

type Picking = (id: string, range: boolean) => Selection;

/** Selects one item, or with Shift all from the last one that was selected to this one. */
export function usePicking(ids: readonly string[], chosen: Selection, choose: (chosen: Selection) => void): Picking {
  const last = useRef<string | null>(null);
  return (id, range) => {
    const from = last.current !== null && ids.includes(last.current) ? last.current : null;
    const next = range && from !== null ? withRange(chosen, ids, from, id) : toggled(chosen, id);
    last.current = id;
    choose(next);
    return next;
  };
}

/** Says if Shift is held while a checkbox changes. */
function withShift({ nativeEvent }: { readonly nativeEvent: Event }): boolean {
  return nativeEvent instanceof MouseEvent && nativeEvent.shiftKey;
}

interface PickBoxProps {
  readonly title: string;
  readonly chosen: boolean;
  /** False if Tab passes it by. */
  readonly stop?: boolean;
  readonly pick: (range: boolean) => void;
}

/** The checkbox of a row; with Shift it selects a range. */
export function PickBox({ title, chosen, stop = true, pick }: PickBoxProps) {
  return (
    <label className="pick">
      <input
        type="checkbox"
        tabIndex={stop ? 0 : -1}
        checked={chosen}
        onChange={(event) => pick(withShift(event))}
        aria-label={`Select ${title}`}
      />
    </label>
  );
}

interface SelectionHeadProps {
  /** What is said while nothing is selected. */
  readonly count: string;
  readonly selected: number;
  readonly ids: readonly string[];
  readonly choose: (chosen: ReadonlySet<string>) => void;
}

/** How much is listed or selected, and the means to select all or nothing. */
export function SelectionHead({ count, selected, ids, choose }: SelectionHeadProps) {
  return (
    <div className="list-count">
      <p role="status">{selected ? `${whole(selected)} selected` : count}</p>
      {selected ? (
        <button type="button" className="quiet" title="Clear the selection (Esc)" onClick={() => choose(new Set())}>
          Clear
        </button>
      ) : (
        <button type="button" className="quiet" disabled={ids.length === 0} onClick={() => choose(new Set(ids))}>
          Select all {whole(ids.length)}
        </button>
      )}
    </div>
  );
}
