/** Requests to the service: its key, the workspace of the address, and its problem documents as errors. */

import { address } from "../state/address";
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
  readonly method?: "GET" | "POST" | "DELETE";
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function workspace(): string {
  return address().params.get("workspace") ?? "";
}

export async function call<T>(path: string, { method = "GET", body, headers, signal }: Call = {}): Promise<T> {
  const answer = await reached(path, {
    method,
    headers: { ...standing(body !== undefined), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  if (!answer.ok) throw await problemOf(answer);
  return (await answer.json()) as T;
}

function standing(hasBody: boolean): Record<string, string> {
  const key = apiKey();
  const name = workspace();
  return {
    ...(hasBody ? { "Content-Type": "application/json" } : {}),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
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
  return new ApiError(answer.status, problem?.detail ?? `the service answered ${answer.status}`);
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
