/** Ratings of memories. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { several } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { reviewer } from "../state/reviewer";
import { answerOf, type Service, useService } from "./client";
import { askAgain, refresh, showQualities } from "./copies";
import type { Rated, Rating } from "./schema";

interface Judgement {
  readonly ids: readonly string[];
  readonly rating: 1 | -1;
  readonly comment: string;
}

/** The beginning of the routes whose answers change with a rating. */
const MEMORIES = "/api/memories";

function ratingsOf(id: string) {
  return { params: { path: { memory_id: id } } };
}

export function useRatings(id: string) {
  return useService().useQuery("get", "/api/memories/{memory_id}/feedback", ratingsOf(id));
}

const WATCH_MILLISECONDS = 1_000;
/** Between two requests for the ratings of the open memory: a rating is seen within two seconds. None is sent while the page is hidden. */

/**
 * Watches the ratings of the open memory. Once another browser changes them, this window asks for its memories again.
 * A request that fails changes nothing on the page.
 */
export function useRatingWatch(id: string): void {
  const { ask, cache, queryOptions } = useService();
  const { queryKey } = queryOptions("get", "/api/memories/{memory_id}/feedback", ratingsOf(id));
  useQuery({
    queryKey: ["watch", id],
    queryFn: async ({ signal }) => {
      const found = await answerOf(ask.GET("/api/memories/{memory_id}/feedback", { ...ratingsOf(id), signal }));
      const shown = cache.getQueryData<readonly Rating[]>(queryKey);
      // A change of this window asks for its memories by itself.
      if (shown && cache.isMutating() === 0 && stateOf(shown) !== stateOf(found)) await askAgain(cache, MEMORIES);
      return null;
    },
    initialData: null,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: WATCH_MILLISECONDS,
    retry: false,
  });
}

function stateOf(ratings: readonly Rating[]): string {
  return ratings.map(({ feedback_id, undone_at }) => `${feedback_id} ${undone_at ?? ""}`).join();
}

function send({ ask }: Service, id: string, rating: 1 | -1, comment: string): Promise<Rated> {
  const params = { ...ratingsOf(id).params, header: { "Idempotency-Key": crypto.randomUUID() } };
  return answerOf(ask.POST("/api/memories/{memory_id}/feedback", { params, body: { rating, comment, reviewer: reviewer() } }));
}

/** Removes a rating; the one that it replaced is given again. */
async function takeBack(service: Service, feedback_id: string, replaced: Rating | null): Promise<Rated> {
  const undone = await answerOf(service.ask.DELETE("/api/feedback/{feedback_id}", { params: { path: { feedback_id } } }));
  return replaced ? send(service, replaced.memory_id, replaced.rating > 0 ? 1 : -1, replaced.comment) : undone;
}

function show({ cache }: Service, rated: readonly Rated[]): void {
  showQualities(cache, new Map(rated.map(({ rating, quality }) => [rating.memory_id, quality])));
}

/** Rates memories; those that the service refuses are said. */
export function useRate() {
  const service = useService();
  return useMutation({
    mutationFn: async ({ ids, rating, comment }: Judgement) => {
      const answers = await inTurn(ids, (id) => send(service, id, rating, comment));
      const rated = succeeded(answers);
      const refused = answers.find((answer) => answer.status === "rejected")?.reason as unknown;
      if (rated.length === 0) throw refused;
      return { rated, refused };
    },
    onSuccess: ({ rated, refused }, { ids, rating }) => {
      show(service, rated);
      const way = rating > 0 ? "up" : "down";
      notify(ids.length === 1 ? `Rated ${way}` : `${several(rated.length)} rated ${way}`, () => undo(service, rated));
      if (refused) notifyFailure(`${several(ids.length - rated.length)} could not be rated`, refused);
    },
    onError: (error, { ids }) =>
      notifyFailure(ids.length === 1 ? "The rating could not be saved" : `${several(ids.length)} could not be rated`, error),
    onSettled: () => void refresh(service, MEMORIES),
  });
}

async function undo(service: Service, given: readonly Pick<Rated, "rating" | "replaced">[]): Promise<void> {
  const answers = await inTurn(given, ({ rating, replaced }) => takeBack(service, rating.feedback_id, replaced));
  const undone = succeeded(answers);
  show(service, undone);
  void refresh(service, MEMORIES);
  const failed = answers.find((answer) => answer.status === "rejected");
  if (failed && given.length === 1) throw failed.reason;
  if (failed) {
    const left = answers.length - undone.length;
    throw new Error(`${several(left)} still ${left === 1 ? "has" : "have"} the rating`);
  }
  notify(given.length === 1 ? "Rating undone" : "Ratings undone");
}

export function useUndoRating() {
  const service = useService();
  return useMutation({
    mutationFn: (rating: Rating) => undo(service, [{ rating, replaced: null }]),
    onError: (error) => notifyFailure("The rating could not be undone", error),
  });
}

const AT_ONCE = 4;
/** Requests; the browser's own limit is 6, and other requests want their turn. */

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly PromiseSettledResult<R>[]> {
  const results: PromiseSettledResult<R>[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.allSettled(items.slice(at, at + AT_ONCE).map(work))));
  }
  return results;
}

function succeeded<R>(answers: readonly PromiseSettledResult<R>[]): readonly R[] {
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
}
