/** The sessions that the address asks for, and the addresses of their turns. */

import type { SessionFilters } from "../../api/sessions";
import { isDay } from "../../parts/days";
import { linkTo, linkWith } from "../../state/address";

export interface Asked {
  readonly filters: SessionFilters;
  readonly open: string | null;
  /** The turn to which the transcript is scrolled. */
  readonly turn: number | null;
}

export function readAsked(params: URLSearchParams): Asked {
  const value = (name: string) => params.get(name)?.trim() ?? "";
  const day = (name: string) => (isDay(value(name)) ? value(name) : "");
  const turn = value("turn");
  return {
    filters: { text: value("q"), since: day("since"), until: day("until"), path: value("path") },
    open: params.get("session"),
    turn: /^\d+$/.test(turn) ? Number(turn) : null,
  };
}

/** The address of a session, or of one of its turns, from any view. */
export function linkToTurn(session: string, turn: number | null = null): string {
  return linkTo("/sessions", { session, turn: turn === null ? null : String(turn) });
}

/** The address of a turn of the open session. */
export function linkToOwnTurn(turn: number): string {
  return linkWith({ turn: String(turn) });
}
