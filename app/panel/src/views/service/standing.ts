/** The state of a key, in words. */

import type { StoredKey } from "../../api/schema";
import { day, exactMoment, whole } from "../../parts/format";

export type Standing = "active" | "expired" | "revoked";

export function standingOf({ revoked_at, expires_at }: StoredKey, now: number = Date.now()): Standing {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= now ? "expired" : "active";
}

export function servedBy({ workspaces }: StoredKey): string {
  return workspaces === null ? "all workspaces" : workspaces.join(", ");
}

/** The end of a key's life, as a short text. */
export function endOf(key: StoredKey): string {
  if (key.revoked_at !== null) return `revoked ${day(key.revoked_at)}`;
  if (key.expires_at === null) return "never expires";
  return `${standingOf(key) === "expired" ? "expired" : "expires"} ${exactMoment(key.expires_at)}`;
}

/** The limit of a key's use that is not the setting's, as a short text; null without one. */
export function limitOf({ requests_per_minute }: StoredKey): string | null {
  if (requests_per_minute === null) return null;
  return requests_per_minute === 0 ? "no limit of requests" : `${whole(requests_per_minute)} requests a minute`;
}

export function lastUseOf({ last_used_at }: StoredKey): string {
  return last_used_at === null ? "never used" : `last used ${exactMoment(last_used_at)}`;
}
