/** Ratings of memories, each shown before the service has stored it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { several } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { call, type Kept, memoryPath, workspace } from "./client";
import { changeNodes } from "./graph";
import { qualityOf, refreshJudgement, showQualities, showQuality } from "./shown";
import { reviewer } from "../state/reviewer";
import type { Rated, Rating } from "./types";

interface Judgement {
  readonly id: string;
  readonly rating: 1 | -1;
  readonly comment: string;
  /** The judged compression of the memory's output; without it, the one whose text the memory has. */
}

function sendRating({ id, rating, comment }: Judgement, within: string): Promise<Rated> {
  return call<Rated>(memoryPath(id, "/feedback"), {
    method: "POST",
    body: { rating, comment, reviewer: reviewer() },
    headers: { "Idempotency-Key": crypto.randomUUID() },
    within,
  });
}

/** Removes a rating; the one that it replaced is given again. */
async function takeBack(feedback: string, replaced: Rating | null, within: string): Promise<Rated> {
  const undone = await call<Rated>(`/api/feedback/${feedback}`, { method: "DELETE", within });
  if (!replaced) return undone;
  const { memory_id: id, comment } = replaced;
  return sendRating({ id, rating: replaced.rating > 0 ? 1 : -1, comment }, within);
}

function clamped(quality: number): number {
  return Math.max(-3, Math.min(3, quality));
}

/** Shows the quality that a rating of the memory's text will lead to; the one before it. */
function expectQuality(kept: Kept, { id, rating }: Judgement): number | undefined {
  const before = qualityOf(kept, id);
  const ratings = kept.client.getQueryData<readonly Rating[]>([kept.within, "ratings", id]);
  const own = ratings?.find((one) => one.undone_at === null && one.reviewer === reviewer())?.rating ?? 0;
  if (before !== undefined) showQuality(kept, id, clamped(before - own + rating));
  return before;
}

/** A rating is shown before the service has it, and taken back on screen if the service refuses it. */
export function useRate() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (judgement: Judgement) => sendRating(judgement, workspace()),
    onMutate: (judgement) => {
      const kept = { client, within: workspace() };
      return { kept, before: expectQuality(kept, judgement) };
    },
    onSuccess: ({ rating, quality, replaced }, _judgement, { kept }) => {
      showQuality(kept, rating.memory_id, quality);
      notify(rating.rating > 0 ? "Rated up" : "Rated down", () => undoRating(kept, rating.feedback_id, replaced));
    },
    onError: (error, { id }, begun) => {
      if (begun?.before !== undefined) showQuality(begun.kept, id, begun.before);
      notifyFailure("The rating could not be saved", error);
    },
    onSettled: (_answer, _error, { id }, begun) => begun && refreshJudgement(begun.kept, id),
  });
}

async function undoRating(kept: Kept, feedback: string, replaced: Rating | null): Promise<void> {
  const { rating, quality } = await takeBack(feedback, replaced, kept.within);
  showQuality(kept, rating.memory_id, quality);
  notify("Rating undone");
  refreshJudgement(kept, rating.memory_id);
}

export function useUndoRating() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (feedback: string) => undoRating({ client, within: workspace() }, feedback, null),
    onError: (error) => notifyFailure("The rating could not be undone", error),
  });
}

export interface ManyRated {
  readonly ids: readonly string[];
  readonly rating: 1 | -1;
}

/** One rating for each of several memories; `done` counts them while they are sent. */
export function useRateMany() {
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const change = useMutation({
    mutationFn: async ({ ids, rating }: ManyRated) => {
      setDone(0);
      const kept = { client, within: workspace() };
      changeNodes(kept, ids, (node) => ({ ...node, quality: clamped(node.quality + rating) }));
      const answers = await inTurn(ids, (id) =>
        sendRating({ id, rating, comment: "" }, kept.within).finally(() => setDone((count) => count + 1)),
      );
      return { kept, answers };
    },
    onSuccess: ({ kept, answers }, { rating }) => {
      const rated = succeeded(answers);
      showQualities(kept, rated);
      if (rated.length) notify(`${several(rated.length)} rated ${rating > 0 ? "up" : "down"}`, () => undoRatings(kept, rated));
      const failure = answers.find((answer) => answer.status === "rejected");
      if (!failure) return;
      void client.invalidateQueries({ queryKey: [kept.within, "graph"] });
      notifyFailure(`${several(answers.length - rated.length)} could not be rated`, failure.reason);
    },
  });
  return { ...change, done };
}

async function undoRatings(kept: Kept, rated: readonly Rated[]): Promise<void> {
  const answers = await inTurn(rated, ({ rating, replaced }) => takeBack(rating.feedback_id, replaced, kept.within));
  showQualities(kept, succeeded(answers));
  const failed = answers.length - succeeded(answers).length;
  if (failed) throw new Error(`${several(failed)} still ${failed === 1 ? "has" : "have"} the rating`);
  notify("Ratings undone");
}

const AT_ONCE = 4;
/** Requests; the browser's own limit is 6, and other requests want their turn. */

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<PromiseSettledResult<R>[]> {
  const results: PromiseSettledResult<R>[] = [];
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) results.push(...(await Promise.allSettled([work(item)])));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

function succeeded<R>(answers: readonly PromiseSettledResult<R>[]): readonly R[] {
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
}
