/** The state of a key, in words. */

import type { Key } from "../../api/types";
import { day, exactMoment, whole } from "../../parts/format";

export type Standing = "active" | "expired" | "revoked";

export function standingOf({ revoked_at, expires_at }: Key, now: number = Date.now()): Standing {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= now ? "expired" : "active";
}

export function servedBy({ workspaces }: Key): string {
  return workspaces === null ? "all workspaces" : workspaces.join(", ");
}

/** The end of a key's life, as a short text. */
export function endOf(key: Key): string {
  if (key.revoked_at !== null) return `revoked ${day(key.revoked_at)}`;
  if (key.expires_at === null) return "never expires";
  return `${standingOf(key) === "expired" ? "expired" : "expires"} ${exactMoment(key.expires_at)}`;
}

/** The limits of a key's use that are not the settings', as a short text; null without any. */
export function limitsOf({ requests_per_minute, bytes_per_minute }: Key): string | null {
  const named: readonly (readonly [number | null, string])[] = [
    [requests_per_minute, "requests"],
    [bytes_per_minute, "bytes"],
  ];
  const told = named.flatMap(([most, name]) => (most === null ? [] : [most === 0 ? `no limit of ${name}` : `${whole(most)} ${name} a minute`]));
  return told.join(", ") || null;
}

export function lastUseOf({ last_used_at }: Key): string {
  return last_used_at === null ? "never used" : `last used ${exactMoment(last_used_at)}`;
}
