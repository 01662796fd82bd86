/** API keys. They belong to no workspace: each answer is the same in all of them. */

import { useQuery } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { apiKey, keepKey } from "../state/session";
import { everywhere } from "./client";
import type { MadeKey, StoredKey } from "./schema";

const { cache, queryOptions, useMutation } = everywhere;
const MADE = ["made-key"];
const STORED = "priors_";

export function useKeys() {
  return everywhere.useQuery("get", "/api/keys", {}, {}, cache);
}

/** The key that was made last, with its secret, until somebody hides it. */
export function useMadeKey() {
  const options = { queryKey: MADE, queryFn: () => null, enabled: false, initialData: null, gcTime: Number.POSITIVE_INFINITY };
  return useQuery<MadeKey | null>(options, cache).data;
}

export function hideSecret(): void {
  cache.setQueryData(MADE, null);
}

/** True if no request needs a key yet. A tab may still have the key of a store whose keys are all revoked. */
export function isFirst(keys: readonly StoredKey[]): boolean {
  return apiKey() === null || (apiKey()?.startsWith(STORED) === true && keys.every(({ revoked_at }) => revoked_at !== null));
}

function listAgain(): Promise<void> {
  return cache.invalidateQueries(queryOptions("get", "/api/keys"));
}

function show(made: MadeKey): Promise<void> {
  cache.setQueryData(MADE, made);
  return listAgain();
}

/** Makes a key. From the first one on each request needs one, so this tab goes on with it. */
export function useMakeKey(first: boolean) {
  return useMutation("post", "/api/keys", {
    onSuccess: (made) => {
      if (first) keepKey(made.secret);
      return show(made);
    },
    onError: (error) => notifyFailure("The key could not be made", error),
  });
}

/** Makes a key in place of another, which stays valid for some seconds. */
export function useRotateKey() {
  return useMutation("post", "/api/keys/{key_id}/rotate", {
    onSuccess: show,
    onError: (error) => notifyFailure("The key could not be rotated", error),
  });
}

export function useRevokeKey(name: string) {
  return useMutation("delete", "/api/keys/{key_id}", {
    onSuccess: () => {
      notify(`The key ${name} is revoked`);
      return listAgain();
    },
    onError: (error) => notifyFailure("The key could not be revoked", error),
  });
}
