/** The tier of a memory, which a person may pin. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { call, memoryPath, workspace } from "./client";
import type { Memory } from "./types";

/** The tier in which a memory is to stay; null lets heat decide again. */
export type Pin = "short_term" | "long_term" | null;

export const TIER_NAMES: Readonly<Record<Memory["tier"], string>> = {
  working: "Working", short_term: "Short-term", long_term: "Long-term",
};

/** Pins a memory to a tier, or unpins it; an undo does the opposite. */
export function usePin({ id, tier, pinned }: Memory) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (pin: Pin) => {
      const within = workspace();
      await send(id, pin, within);
      return { within, pin };
    },
    onSuccess: ({ within, pin }) => {
      const refresh = () => client.invalidateQueries({ queryKey: [within] });
      const undo = async () => {
        await send(id, pinned && tier !== "working" ? tier : null, within);
        await refresh();
      };
      notify(pin ? `Kept in ${TIER_NAMES[pin].toLowerCase()}` : "Heat decides about the tier again", undo);
      return refresh();
    },
    onError: (error) => notifyFailure("The tier could not be changed", error),
  });
}

function send(id: string, pin: Pin, within: string): Promise<unknown> {
  const path = memoryPath(id, "/tier");
  return pin ? call(path, { method: "PUT", body: { tier: pin }, within }) : call(path, { method: "DELETE", within });
}
