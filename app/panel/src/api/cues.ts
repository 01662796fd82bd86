/** Cues, their changes, and activation. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { whole } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { ApiError, call, type Kept, keptWithin, query, workspace } from "./client";
import { refreshAll } from "./shown";
import type { Activation, ActivationInput, Cue, CueEdit, CuePage } from "./types";

const PAGE = 200;
const MOST_PAGES = 10;

/** The cues that wait for a decision, by their ids. */
export function useProposedCues() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "cues", "proposed"],
    queryFn: async ({ signal }) => {
      const found: Cue[] = [];
      let cursor: string | null = "";
      for (let page = 0; page < MOST_PAGES && cursor !== null; page += 1) {
        const next: CuePage = await call<CuePage>(`/api/cues${query({ state: "proposed", limit: PAGE, cursor })}`, { signal, within });
        found.push(...next.cues);
        cursor = next.next;
      }
      return new Map(found.map((cue) => [cue.id, cue]));
    },
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
