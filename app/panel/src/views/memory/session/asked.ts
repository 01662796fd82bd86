/** The addresses of sessions and of their turns. */

import { linkTo } from "../../../state/address";

/** The turn that the address names; null where it names none. */
export function readTurn(params: URLSearchParams): number | null {
  const turn = params.get("turn")?.trim() ?? "";
  return /^\d+$/.test(turn) ? Number(turn) : null;
}

/** The address of a session, or of one of its turns, from any place. */
export function linkToTurn(session: string, turn: number | null = null): string {
  return linkTo("/memory", { session, turn: turn === null ? null : String(turn) });
}
