/** The proof that something was taken back: the history and the warnings that an agent would get now. */

import { useQuery } from "@tanstack/react-query";
import { answerOf, type Service, useService } from "../../api/client";

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
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

async function prove({ query, plan, ids, texts }: Asked, { ask }: Service, signal: AbortSignal): Promise<Proof> {
  const [history, activation] = await Promise.all([
    answerOf(ask.POST("/api/history", { body: { query, k: HITS, budget_tokens: 4_000, trial: true }, signal })),
    answerOf(ask.POST("/api/activate", { body: { plan, trial: true }, signal })),
  ]);
  const wrong = texts.map(plain).filter(Boolean);
  const says = (text: string) => wrong.some((one) => plain(text).includes(one));
  return {
    shown: history.hits.filter(({ id, body }) => ids.includes(id) || says(body)).map(({ id }) => id),
    fired: activation.cues.filter(({ id, imperative }) => ids.includes(id) || says(imperative)).map(({ id }) => id),
  };
}

export function useProof(asked: Asked) {
  const service = useService();
  return useQuery({
    // A key like those of its routes: each change asks for it again.
    queryKey: ["post", "/api/history", { proof: asked }],
    queryFn: ({ signal }) => prove(asked, service, signal),
    staleTime: 0,
  });
}
