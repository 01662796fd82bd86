/** Changes of memories: tags, deletion, restoration, release. Each can be undone. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { several } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { call, type Kept, workspace } from "./client";
import { changeNodes, dropNodes } from "./graph";
import { refreshAll } from "./shown";
import type { Changed } from "./types";

type Verb = "tag" | "untag" | "delete" | "restore" | "quarantine" | "supersede";

function send(verb: Verb, within: string, body: { readonly ids: readonly string[]; readonly tag?: string }): Promise<Changed> {
  return call<Changed>(`/api/memories:${verb}`, { method: "POST", body, within });
}

/** Says what an undo took back; where that is nothing, it failed. */
function tellUndone(said: string, { changed, missing }: Changed): void {
  if (changed.length === 0) throw new Error("the memory has changed since, or no longer exists");
  notify(missing.length ? `${said}, except for ${several(missing.length)} that changed in the meantime` : said);
}

type TagVerb = "tag" | "untag";

interface Tagged {
  readonly ids: readonly string[];
  readonly tag: string;
}

/** Gives memories a tag or takes it from them; the undo changes those that this changed. */
export function useTagging(verb: TagVerb) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ ids, tag }: Tagged) => {
      const kept = { client, within: workspace() };
      return { kept, ...(await send(verb, kept.within, { ids, tag })) };
    },
    onSuccess: ({ kept, changed, missing }, { tag }) => {
      retag(kept, changed, verb, tag);
      const opposite = verb === "tag" ? "untag" : "tag";
      const undo = async () => {
        const undone = await send(opposite, kept.within, { ids: changed, tag });
        retag(kept, undone.changed, opposite, tag);
        tellUndone(verb === "tag" ? "Tag removed" : "Tag restored", undone);
      };
      const left = missing.length ? `; ${several(missing.length)} ${UNTAGGED[verb]}` : "";
      notify(`${several(changed.length)} ${TAGGED[verb]} ${tag}${left}`, changed.length ? undo : undefined);
    },
    onError: (error) => notifyFailure(verb === "tag" ? "Nothing was tagged" : "No tag was removed", error),
  });
}

const TAGGED = { tag: "tagged", untag: "no longer tagged" } as const;
const UNTAGGED = { tag: "already had the tag or cannot have more tags", untag: "did not have the tag" } as const;

function retag(kept: Kept, ids: readonly string[], verb: TagVerb, tag: string): void {
  showTags(kept, ids, (tags) => (verb === "tag" ? [...tags, tag] : tags.filter((one) => one !== tag)));
}

function showTags(kept: Kept, ids: readonly string[], change: (tags: readonly string[]) => readonly string[]): void {
  changeNodes(kept, ids, (node) => ({ ...node, tags: change(node.tags) }));
  for (const name of ["facets", "memories", "memory", "search"]) void kept.client.invalidateQueries({ queryKey: [kept.within, name] });
}

const DONE = { delete: "deleted", restore: "restored", reinstate: "restored", release: "released" } as const;
/** The undo of each action; to reinstate is to restore what another memory superseded. */
const BACK = { delete: "restore", restore: "delete", reinstate: "supersede", release: "quarantine" } as const;
export type Action = keyof typeof DONE;

/** Takes memories out, or brings them back; each is the other's undo. */
export function useChange(action: Action) {
  const client = useQueryClient();
  const verb = action === "delete" ? "delete" : "restore";
  const back = BACK[action];
  return useMutation({
    mutationFn: async (ids: readonly string[]) => {
      const kept = { client, within: workspace() };
      return { kept, ...(await send(verb, kept.within, { ids })) };
    },
    onSuccess: ({ kept, changed, missing }) => {
      const putBack = verb === "delete" ? dropNodes(kept, changed) : undefined;
      const undo = async () => {
        const undone = await send(back, kept.within, { ids: changed });
        putBack?.(undone.changed);
        void refreshAll(kept);
        tellUndone("Change undone", undone);
      };
      const left = missing.length ? `; ${several(missing.length)} could not be ${DONE[action]}` : "";
      notify(`${several(changed.length)} ${DONE[action]}${left}`, changed.length ? undo : undefined);
      return refreshAll(kept);
    },
    onError: (error) => notifyFailure(`Nothing was ${DONE[action]}`, error),
  });
}
