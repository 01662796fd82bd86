/** Requests to the service, typed by its OpenAPI document: each workspace has a client and a cache of its own. */

import { QueryClient } from "@tanstack/react-query";
import openFetch, { type Client, createQuerySerializer, type Middleware } from "openapi-fetch";
import openHooks, { type OpenapiQueryClient } from "openapi-react-query";
import { createContext, use } from "react";
import { reviewer } from "../state/reviewer";
import { apiKey, askForKey } from "../state/session";
import type { paths } from "./schema";

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The operations of the document, each of which may fail with an error that names what is wrong. */
type Failing<Operation> = Operation extends { readonly responses: infer Responses }
  ? Omit<Operation, "responses"> & {
      readonly responses: Responses & { readonly default: { readonly content: { readonly "application/json": ApiError } } };
    }
  : Operation;
type Routes = { readonly [Path in keyof paths]: { readonly [Method in keyof paths[Path]]: Failing<paths[Path][Method]> } };

export interface Service extends OpenapiQueryClient<Routes> {
  /** Empty for the service's default workspace. */
  readonly workspace: string;
  readonly ask: Client<Routes>;
  readonly cache: QueryClient;
}

const NAMED = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** Ids come from addresses, which people write: what is no id leads to no other route. */
const IDS: Readonly<Record<string, string>> = { memory_id: "memory", cue_id: "cue", context_id: "context" };
/** Routes that are asked by POST and change nothing: they need no name of a reviewer. */
const QUESTIONS: ReadonlySet<string> = new Set(["/api/search", "/api/history", "/api/activate", "/api/contexts"]);

function requestsIn(workspace: string): Middleware {
  return {
    async onRequest({ request, schemaPath, params }) {
      if (workspace !== "" && !NAMED.test(workspace)) {
        throw new ApiError(400, `${workspace} is not a valid workspace name: use 1 to 64 letters, digits, dots, dashes or underscores`);
      }
      for (const [name, id] of Object.entries(params.path ?? {})) {
        if (name in IDS && !UUID.test(String(id))) throw new ApiError(404, `there is no ${IDS[name]} ${String(id)}`);
        const segments = name === "session_id" ? String(id).split("/") : [String(id)];
        // A browser would follow such a part of the address to another route.
        if (segments.some((segment) => segment === "." || segment === "..")) {
          throw new ApiError(404, `there is no such ${name.replace(/_id$/, "")}`);
        }
      }
      if (workspace) request.headers.set("X-Workspace", workspace);
      const key = apiKey();
      if (key) request.headers.set("Authorization", `Bearer ${key}`);
      if (request.method !== "GET" && !QUESTIONS.has(schemaPath)) request.headers.set("X-Reviewer", encodeURIComponent(reviewer()));
      const memory = params.path?.memory_id;
      if (request.method === "GET" && memory) await rest(String(memory), request.signal);
      // The id of a session may be a path, whose slashes are part of the address.
      return schemaPath === "/api/sessions/{session_id}" ? new Request(request.url.replaceAll("%2F", "/"), request) : undefined;
    },
    onError({ error }) {
      if (error instanceof DOMException && error.name === "AbortError") return undefined;
      return new ApiError(0, "the service cannot be reached");
    },
    async onResponse({ response }) {
      if (response.ok) return;
      if (response.status === 401) askForKey();
      const problem = (await response.json().catch(() => null)) as { readonly detail?: string } | null;
      throw new ApiError(response.status, problem?.detail ?? `the service answered with status ${response.status}`);
    },
  };
}

const serialized = createQuerySerializer();

/** Repeated names for lists; what is empty is left out. */
function querySerializer(given: Readonly<Record<string, unknown>>): string {
  return serialized(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")));
}

const TRIES = 2;
const FRESH_MILLISECONDS = 10_000;

function cacheOfAnswers(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // The browser may think itself offline and still reach a service on this machine.
      mutations: { networkMode: "always" },
      queries: {
        networkMode: "always",
        staleTime: FRESH_MILLISECONDS,
        retry: (failures, error) => failures < TRIES && !(error instanceof ApiError && error.status >= 400),
      },
    },
  });
}

/** The answer to what `first.ts` asked, for the same question of the same workspace. */
function taken({ url, headers }: Request): Promise<Response> | undefined {
  const { first } = window;
  if (first?.url !== url || first.workspace !== headers.get("X-Workspace")) return undefined;
  window.first = undefined;
  return first.answer;
}

const services = new Map<string, Service>();

export function serviceIn(workspace: string): Service {
  const known = services.get(workspace);
  if (known) return known;
  const ask = openFetch<Routes>({ querySerializer, fetch: (request) => taken(request) ?? fetch(request) });
  ask.use(requestsIn(workspace));
  const service = { ...openHooks(ask), workspace, ask, cache: cacheOfAnswers() };
  services.set(workspace, service);
  return service;
}

/** For what belongs to no workspace: keys, and the workspaces themselves. */
export const everywhere = serviceIn("");

export const ServiceContext = createContext(everywhere);

/** The service in the workspace of the address. */
export function useService(): Service {
  return use(ServiceContext);
}

export function forgetAnswers(): void {
  for (const { cache } of services.values()) cache.clear();
}

/** What a request is answered with; one that fails throws. */
export async function answerOf<T>(request: Promise<{ readonly data?: T }>): Promise<T> {
  return (await request).data as T;
}

const REST_MILLISECONDS = 100;
/** Shorter than a pause between two presses, longer than between the repeats of a held key. */

let latest = { id: "", at: Number.NEGATIVE_INFINITY, until: 0 };

/** Resolves at once for a memory that is chosen by itself, and after a rest for one right behind another: a held key runs through them. */
export function rest(id: string, signal: AbortSignal): Promise<void> {
  const now = performance.now();
  if (id !== latest.id) latest = { id, at: now, until: now - latest.at < REST_MILLISECONDS ? now + REST_MILLISECONDS : now };
  if (latest.until <= now) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, latest.until - now);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
