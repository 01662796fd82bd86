/** The rules of retrying, which are those of the Python client. */

import type { Route } from "./types.js";

/** Milliseconds before the first retry, and at most; each pause is twice the last, of which a random half is taken off. */
export const FIRST_PAUSE = 200;
export const LONGEST_PAUSE = 10_000;

/** The answer to a request that was not taken. */
const BUSY = 429;
/** Answers after which the request may have been taken, and is worth another attempt if it may be repeated. */
const PASSING = new Set([408, BUSY, 502, 503, 504]);
/** Errors before anything of a request was sent, as Node names them. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Returns the milliseconds before the next attempt; undefined if the answer stands. */
export function pauseAfter(route: Route, answer: Response, attempt: number): number | undefined {
  const again = route.repeatable ? PASSING.has(answer.status) : answer.status === BUSY;
  if (!again) return undefined;
  return Math.min(retryAfter(answer.headers.get("retry-after")) ?? pause(attempt), LONGEST_PAUSE);
}

/** Returns the milliseconds before the next attempt; undefined if the request may have been taken and must not be repeated. */
export function pauseWithoutAnswer(route: Route, error: unknown, attempt: number): number | undefined {
  return route.repeatable || wasNotSent(error) ? pause(attempt) : undefined;
}

export function wasNotSent(error: unknown): boolean {
  const code = (error as { cause?: { code?: string } }).cause?.code;
  return code !== undefined && UNSENT.has(code);
}

/** Tells whether the request may have been taken though this answer says that it failed. */
export function mayBeTaken(answer: Response): boolean {
  return answer.status !== BUSY;
}

function pause(attempt: number): number {
  return Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * (0.5 + Math.random() / 2);
}

/** Reads a Retry-After header, seconds or a date, as milliseconds. */
function retryAfter(value: string | null): number | undefined {
  if (value === null || value.trim() === "") return undefined;
  const asked = Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1000;
  return Number.isNaN(asked) ? undefined : Math.max(0, asked);
}
