/** The proof that something was taken back: the history and the warnings that an agent would get now. */

import { useQuery } from "@tanstack/react-query";
import { call, workspace } from "./client";
import type { Activation, ActivationInput, History, HistoryInput } from "./types";

interface Asked {
  readonly query: string;
  readonly plan: string;
  /** What was taken back. */
  readonly ids: readonly string[];
  readonly texts: readonly string[];
}

export interface Proof {
  /** Memories of the history that say it still. */
  readonly shown: readonly string[];
  /** Cues that warn of it still. */
  readonly fired: readonly string[];
}

const HITS = 10;

function plain(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
}

async function prove({ query, plan, ids, texts }: Asked, within: string, signal: AbortSignal): Promise<Proof> {
  const asked: HistoryInput = { query, k: HITS, budget_tokens: 4_000, trial: true };
  const planned: ActivationInput = { plan, trial: true };
  const [history, activation] = await Promise.all([
    call<History>("/api/history", { method: "POST", body: asked, within, signal }),
    call<Activation>("/api/activate", { method: "POST", body: planned, within, signal }),
  ]);
  const wrong = texts.map(plain).filter(Boolean);
  const says = (text: string) => wrong.some((one) => plain(text).includes(one));
  return {
    shown: history.hits.filter(({ id, body }) => ids.includes(id) || says(body)).map(({ id }) => id),
    fired: activation.cues.filter(({ id, imperative }) => ids.includes(id) || says(imperative)).map(({ id }) => id),
  };
}

export function useProof(asked: Asked) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "proof", asked],
    queryFn: ({ signal }) => prove(asked, within, signal),
    staleTime: 0,
  });
}
