/** The sessions that match a search: by their title or id, and by what was said in them. Pure. */

import type { Hit, SessionSummary } from "../../api/types";

export interface Found {
  readonly id: string;
  readonly title: string;
  readonly at: string | null;
  /** The session itself, where its title or id matches. */
  readonly session: SessionSummary | null;
  /** The turn that matches best. */
  readonly turn: Hit | null;
}

/** Each session once: those that are named first, then the others by their best turns. */
export function foundIn(sessions: readonly SessionSummary[], hits: readonly Hit[]): readonly Found[] {
  const turns = Map.groupBy(hits.filter(({ source }) => source !== null), ({ source }) => source?.uri ?? "");
  const named = sessions.map((session) => ({
    id: session.id,
    title: session.title,
    at: session.started_at,
    session,
    turn: turns.get(session.id)?.[0] ?? null,
  }));
  const names = new Set(sessions.map(({ id }) => id));
  const said = [...turns].filter(([id]) => !names.has(id)).map(([id, [turn]]) => ({
    id,
    title: turn?.source?.title ?? "",
    at: turn?.occurred_at ?? null,
    session: null,
    turn: turn ?? null,
  }));
  return [...named, ...said];
}
