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

/** Stores a note, or a new version of one that it then replaces; resolves to the id under which it is stored. */
export function useSaveNote(edited: string | undefined) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (note: Note) => {
      const within = workspace();
      const id = await store(note, within);
      if (edited && edited !== id) await send("supersede", { ids: [edited], by: id }, within);
      return { within, id };
    },
    onSuccess: ({ within, id }) => {
      const refresh = () => client.invalidateQueries({ queryKey: [within] });
      const undo = async () => {
        await send("delete", { ids: [id] }, within);
        if (edited) await send("restore", { ids: [edited] }, within);
        await refresh();
        notify(edited ? "The old version is back" : "Note deleted");
      };
      notify(edited ? "Saved as a new version" : "Note saved", undo);
      return refresh();
    },
    onError: (error) => notifyFailure("The note could not be saved", error),
  });
}

function send(verb: "delete" | "restore" | "supersede", body: object, within: string): Promise<Changed> {
  return call<Changed>(`/api/memories:${verb}`, { method: "POST", body, within });
}

async function store(note: Note, within: string): Promise<string> {
  const { ids } = await call<Stored>("/api/memories", { method: "POST", body: { kind: "note", ...note }, within });
  const [id] = ids;
  if (!id) throw new Error("the service did not store it");
  return id;
}
