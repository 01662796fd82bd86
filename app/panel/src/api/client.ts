/** Requests to the service: its key, the workspace of the address, and its problem documents as errors. */

import type { QueryClient } from "@tanstack/react-query";
import { address } from "../state/address";
import { reviewer } from "../state/reviewer";
import { apiKey, askForKey } from "../state/session";
import type { Problem } from "./types";

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** The workspace, where the address may name another by the time that this is sent. */
  readonly within?: string;
}

/** The pattern of a workspace's name. */
export const WORKSPACE_NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}";
const NO_CONTENT = 204;
const NAMED = new RegExp(`^${WORKSPACE_NAME}$`);

export function workspace(): string {
  return address().params.get("workspace") ?? "";
}

export async function call<T>(path: string, given: Call = {}): Promise<T> {
  const { method = "GET", body, headers, signal, within = workspace() } = given;
  if (within !== "" && !NAMED.test(within)) {
    throw new ApiError(400, `${within} is not a valid workspace name: use 1 to 64 letters, digits, dots, dashes or underscores`);
  }
  const answer = await reached(path, {
    method,
    headers: { ...standing(body !== undefined, within, method !== "GET" && !QUESTIONS.test(path)), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  if (!answer.ok) throw await problemOf(answer);
  return (answer.status === NO_CONTENT ? undefined : await answer.json()) as T;
}

/** Routes that are asked by POST and change nothing: they need no name of a reviewer. */
const QUESTIONS = /^\/api\/(search|history|activate|contexts)$/;

function standing(hasBody: boolean, name: string, writes: boolean): Record<string, string> {
  const key = apiKey();
  return {
    ...(hasBody ? { "Content-Type": "application/json" } : {}),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
    ...(writes ? { "X-Reviewer": encodeURIComponent(reviewer()) } : {}),
    ...(name ? { "X-Workspace": name } : {}),
  };
}

async function reached(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "the service cannot be reached");
  }
}

async function problemOf(answer: Response): Promise<ApiError> {
  if (answer.status === 401) askForKey();
  const problem = (await answer.json().catch(() => null)) as Problem | null;
  return new ApiError(answer.status, problem?.detail ?? `the service answered with status ${answer.status}`);
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** A memory's route. Ids come from addresses, which people write: what is none leads to no other route. */
export function memoryPath(id: string, rest = ""): string {
  if (!UUID.test(id)) throw new ApiError(404, "there is no such memory");
  return `/api/memories/${id}${rest}`;
}

/** The cache and the workspace in which a change began: it ends there, even if the address names another by then. */
export interface Kept {
  readonly client: QueryClient;
  readonly within: string;
}

/** Keeps the last answer on the page while another question is answered, unless it is another workspace's. */
export function keptWithin(within: string) {
  return <T>(last: T | undefined, asked: { readonly queryKey: readonly unknown[] } | undefined): T | undefined =>
    asked?.queryKey[0] === within ? last : undefined;
}

/** Repeated names for lists; what is empty is left out. */
export function query(given: Readonly<Record<string, string | number | readonly string[] | null | undefined>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [String(value)]) params.append(name, one);
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}
