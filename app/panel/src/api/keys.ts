/** API keys. They belong to no workspace: each answer is the same in all of them. */

import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { apiKey, keepKey } from "../state/session";
import { call } from "./client";
import type { Key, KeyInput, MadeKey } from "./types";

const KEYS = ["", "keys"];
const MADE = ["", "made-key"];
const STORED = "priors_";

export function useKeys() {
  return useQuery({
    queryKey: KEYS,
    queryFn: ({ signal }) => call<readonly Key[]>("/api/keys", { signal, within: "" }),
  });
}

/** The key that was made last, with its secret, until somebody hides it. */
export function useMadeKey() {
  return useQuery<MadeKey | null>({ queryKey: MADE, queryFn: () => null, enabled: false, initialData: null, gcTime: Number.POSITIVE_INFINITY }).data;
}

export function useHideSecret() {
  const client = useQueryClient();
  return () => client.setQueryData(MADE, null);
}

/** True if no request needs a key yet. A tab may still have the key of a store whose keys are all revoked. */
export function isFirst(keys: readonly Key[]): boolean {
  return apiKey() === null || (apiKey()?.startsWith(STORED) === true && keys.every(({ revoked_at }) => revoked_at !== null));
}

function keep(client: QueryClient, made: MadeKey): Promise<void> {
  client.setQueryData(MADE, made);
  return client.invalidateQueries({ queryKey: KEYS });
}

/** Makes a key. From the first one on each request needs one, so this tab goes on with it. */
export function useMakeKey(first: boolean) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (wanted: KeyInput) => call<MadeKey>("/api/keys", { method: "POST", body: wanted, within: "" }),
    onSuccess: (made) => {
      if (first) keepKey(made.secret);
      return keep(client, made);
    },
    onError: (error) => notifyFailure("The key could not be made", error),
  });
}

/** Makes a key in place of another, which stays valid for some seconds. */
export function useRotateKey(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (overlap: number) =>
      call<MadeKey>(`/api/keys/${id}/rotate`, { method: "POST", body: { overlap_seconds: overlap }, within: "" }),
    onSuccess: (made) => keep(client, made),
    onError: (error) => notifyFailure("The key could not be rotated", error),
  });
}

export function useRevokeKey({ id, name }: Key) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call<Key>(`/api/keys/${id}`, { method: "DELETE", within: "" }),
    onSuccess: () => {
      notify(`The key ${name} is revoked`);
      return client.invalidateQueries({ queryKey: KEYS });
    },
    onError: (error) => notifyFailure("The key could not be revoked", error),
  });
}
