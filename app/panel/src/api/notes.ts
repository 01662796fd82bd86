/** Notes that people write in the panel. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { call, workspace } from "./client";
import type { Changed, Stored } from "./types";

export interface Note {
  readonly title: string;
  readonly body: string;
  readonly tags: readonly string[];
}

/** Stores a note; resolves to the id under which it is stored. */
export function useSaveNote() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (note: Note) => {
      const within = workspace();
      return { within, id: await store(note, within) };
    },
    onSuccess: ({ within, id }) => {
      const refresh = () => client.invalidateQueries({ queryKey: [within] });
      const undo = async () => {
        await call<Changed>("/api/memories:delete", { method: "POST", body: { ids: [id] }, within });
        await refresh();
        notify("Note deleted");
      };
      notify("Note saved", undo);
      return refresh();
    },
    onError: (error) => notifyFailure("The note could not be saved", error),
  });
}

async function store(note: Note, within: string): Promise<string> {
  const { ids } = await call<Stored>("/api/memories", { method: "POST", body: { kind: "note", ...note }, within });
  const [id] = ids;
  if (!id) throw new Error("the service did not store it");
  return id;
}
