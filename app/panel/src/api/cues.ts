/** Cues, their changes, and activation. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { whole } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { ApiError, call, type Kept, keptWithin, query, workspace } from "./client";
import { refreshAll } from "./shown";
import type { Activation, ActivationInput, Cue, CueEdit, CuePage } from "./types";

const PAGE = 50;

export interface CueFilters {
  readonly text: string;
  readonly kind: string;
  readonly state: string;
  readonly action_type: string;
  /** The id of a session that is evidence. */
  readonly session: string;
}

export function useCues(filters: CueFilters) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "cues", filters],
    queryFn: ({ pageParam, signal }) =>
      call<CuePage>(`/api/cues${query({ ...filters, limit: PAGE, cursor: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
  });
}

export function useCue(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "cue", id],
    queryFn: ({ signal }) => call<Cue>(cuePath(id), { signal, within }),
  });
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

function cuePath(id: string, rest = ""): string {
  if (!UUID.test(id)) throw new ApiError(404, "there is no such cue");
  return `/api/cues/${id}${rest}`;
}

/** Each is asked once, and again only when somebody says so; it is a trial, and counts for no cue. */
export function useActivation(asked: ActivationInput) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "activation", asked],
    queryFn: ({ signal }) => call<Activation>("/api/activate", { method: "POST", body: asked, signal, within }),
    enabled: asked.plan !== "",
    placeholderData: keptWithin(within),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

const DONE = { retire: "retired", restore: "restored", accept: "accepted" } as const;
export type CueAction = keyof typeof DONE;

/** A proposed cue that is restored is accepted. */
function sent(action: CueAction, id: string, within: string): Promise<Cue> {
  return call<Cue>(cuePath(id), { method: "PATCH", body: { state: action === "retire" ? "retired" : "active" }, within });
}

function several(count: number): string {
  return count === 1 ? "1 cue" : `${whole(count)} cues`;
}

/** Changes the state of cues; each change can be undone. */
export function useCueAction(action: CueAction) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (ids: readonly string[]) => {
      const kept: Kept = { client, within: workspace() };
      for (const id of ids) await sent(action, id, kept.within);
      return kept;
    },
    onSuccess: (kept, ids) => {
      const back = action === "retire" ? "restore" : "retire";
      const undo = async () => {
        for (const id of ids) await sent(back, id, kept.within);
        await refreshAll(kept);
        notify(`${several(ids.length)} ${DONE[back]}`);
      };
      notify(`${several(ids.length)} ${DONE[action]}`, undo);
      return refreshAll(kept);
    },
    onError: (error) => {
      notifyFailure(`Not every cue was ${DONE[action]}`, error);
      return refreshAll({ client, within: workspace() });
    },
  });
}

/** Merges cues into one of them; the others are superseded by it. */
export function useMergeCues() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ ids, into }: { readonly ids: readonly string[]; readonly into: string }) => {
      const kept: Kept = { client, within: workspace() };
      await call<Cue>("/api/cues:merge", { method: "POST", body: { ids, into }, within: kept.within });
      return kept;
    },
    onSuccess: (kept, { ids }) => {
      const undo = async () => {
        for (const id of ids) await sent("restore", id, kept.within);
        await refreshAll(kept);
        notify(`${several(ids.length)} restored`);
      };
      notify(`${several(ids.length + 1)} merged into one`, undo);
      return refreshAll(kept);
    },
    onError: (error) => notifyFailure("The cues could not be merged", error),
  });
}

/** Gives a cue new values of some fields; the undo gives it the old ones. */
export function useEditCue(cue: Cue) {
  const client = useQueryClient();
  const edit = (changes: CueEdit, within: string) => call<Cue>(cuePath(cue.id), { method: "PATCH", body: changes, within });
  return useMutation({
    mutationFn: async (changes: CueEdit) => {
      const kept: Kept = { client, within: workspace() };
      await edit(changes, kept.within);
      return kept;
    },
    onSuccess: (kept, changes) => {
      const undo = async () => {
        const names = Object.keys(changes) as readonly (keyof CueEdit)[];
        await edit(Object.fromEntries(names.map((name) => [name, cue[name]])), kept.within);
        await refreshAll(kept);
        notify("The old values are back");
      };
      notify("Cue saved", undo);
      return refreshAll(kept);
    },
    onError: (error) => notifyFailure("The cue could not be saved", error),
  });
}
