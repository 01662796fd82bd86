/** Proposed changes to cues, and people's decisions on them. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { call, type Kept, keptWithin, workspace } from "./client";
import { refreshAll } from "./shown";
import type { Proposal } from "./types";

/** As many as the service gives at once; a desk with more says so. */
export const MOST_PROPOSALS = 1000;

export function useProposals() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "proposals"],
    queryFn: ({ signal }) => call<readonly Proposal[]>(`/api/proposals?limit=${MOST_PROPOSALS}`, { signal, within }),
    placeholderData: keptWithin(within),
  });
}

interface Decision {
  readonly proposal: Proposal;
  readonly accept: boolean;
  /** The file that holds the convention that a cue becomes. */
  readonly artifact: string;
}

/** Accepts a proposal or declines it; either can be taken back. */
export function useDecision() {
  const client = useQueryClient();
  const within = workspace();
  return useMutation({
    mutationFn: async ({ proposal, accept, artifact }: Decision) => {
      const kept: Kept = { client, within: workspace() };
      const path = `/api/proposals/${proposal.id}`;
      await call<Proposal>(`${path}/decision`, { method: "POST", body: { accept, artifact }, within: kept.within });
      return { kept, path };
    },
    onSuccess: ({ kept, path }, { accept }) => {
      const undo = async () => {
        await call<Proposal>(`${path}/undo`, { method: "POST", within: kept.within });
        await refreshAll(kept);
        notify(accept ? "The cues are as they were" : "The proposal is open again");
      };
      notify(accept ? "Proposal accepted" : "Proposal declined", undo);
      return refreshAll(kept);
    },
    onError: (error) => {
      notifyFailure("The proposal was not decided", error);
      return refreshAll({ client, within });
    },
  });
}
