/** What waits for a person, gravest first, as one list. */

import { useService } from "../../api/client";
import { KEPT, useEffectReport, useEmptyRecalls, useHeldBack, useProposedCues } from "../../api/queries";
import type { Alert, Cue, ListedMemory, MemoryPage, MemoryView, ProposalView } from "../../api/schema";
import { nameOf } from "../../parts/excerpt";
import { passagesOf } from "../../parts/Findings";
import { capitalised, day, shortPath, signed, withMinus } from "../../parts/format";
import type { Paged } from "../../parts/states";
import { keyOf, useKept } from "../../state/kept";

export const REASONS = [
  { name: "back", label: "Came back" },
  { name: "harmful", label: "Called harmful" },
  { name: "held", label: "Held back" },
  { name: "prune", label: "Prune" },
  { name: "lesson", label: "Possible lessons" },
  { name: "nothing", label: "Found nothing" },
] as const;
/** What does not wait, and is looked through on request. */
export const PUT_AWAY = [
  { name: "deleted", label: "Trash" },
  { name: "superseded", label: "Replaced" },
] as const;
export type Reason = (typeof REASONS | typeof PUT_AWAY)[number]["name"];

interface Listed {
  readonly id: string;
  readonly reason: Reason;
  readonly title: string;
  readonly said: string;
  readonly facts: readonly string[];
  readonly when: string | null;
  /** All that is known of it: once that changes, a kept item waits again. */
  readonly state: string;
}

export type Item = Listed &
  (
    | { readonly opens: "issue"; readonly alert: Alert }
    | { readonly opens: "memory"; readonly memory: string; readonly kind: string }
    | { readonly opens: "proposal"; readonly proposal: ProposalView }
    | { readonly opens: "recall"; readonly recall: string }
  );

export interface Queue {
  readonly items: readonly Item[];
  /** Items of the reason that the reviewer keeps in this browser. */
  readonly kept: readonly Item[];
  /** The number of each reason, without what is kept; the service counts, not the page. With `more`, there are more than that. */
  readonly counts: Readonly<Record<Reason, { readonly count: number; readonly more: boolean }>>;
  readonly pages: readonly Paged[];
  readonly isPending: boolean;
  readonly failures: readonly { readonly error: Error; readonly refetch: () => unknown }[];
}

/** As many as the service gives at once; a desk with more says so. */
const MOST_PROPOSALS = 1000;

export function useQueue(reason: Reason | null): Queue {
  const { useQuery, workspace } = useService();
  const keptStates = useKept();
  const report = useEffectReport();
  const proposals = useQuery("get", "/api/proposals", { params: { query: { limit: MOST_PROPOSALS } } }, KEPT);
  const quarantined = useHeldBack("quarantined");
  const suspect = useHeldBack("suspect");
  const prune = useHeldBack("prune");
  const recalls = useEmptyRecalls();
  const deleted = useHeldBack("deleted", reason === "deleted");
  const superseded = useHeldBack("superseded", reason === "superseded");
  const counts = useQuery("get", "/api/memories/review-counts").data;
  const proposed = useProposedCues();

  const alerts = report.data?.alerts ?? [];
  const all = proposals.data ?? [];
  const called = all.filter(({ change }) => change === "harmful");
  const flagged = new Set(called.flatMap(({ cue_ids }) => cue_ids));
  const harmful = (report.data?.harmful ?? []).filter(({ id }) => !flagged.has(id));
  const lessons = all.filter(({ change }) => change !== "harmful");
  const held = [...memoriesOf(quarantined), ...memoriesOf(suspect)];
  // A reviewer's own questions wait for nobody.
  const asked = (recalls.data?.pages.flat() ?? []).filter(({ purpose, agent }) => purpose !== "trial" && agent !== "panel");
  const items: readonly Item[] = [
    ...alerts.map(ofAlert),
    ...called.map((proposal) => ofProposal(proposal, "harmful")),
    ...harmful.map(
      ({ id, title, kind, why }): Item => ({
        id: `harmful ${id}`,
        reason: "harmful",
        title,
        said: withMinus(why),
        facts: [kind],
        when: null,
        opens: "memory",
        memory: id,
        kind,
        state: why,
      }),
    ),
    ...held.map((memory) => ofMemory(memory, "held", whereFound(memory))),
    ...memoriesOf(prune).map(ofCandidate),
    ...lessons.map((proposal) => ofProposal(proposal, "lesson")),
    ...asked.map(
      ({ recall_id, query, agent, run_id, created_at }): Item => ({
        id: `recall ${recall_id}`,
        reason: "nothing",
        title: query,
        said: "no stored memory answered it",
        facts: [agent, run_id].filter((one): one is string => Boolean(one)),
        when: created_at,
        opens: "recall",
        recall: recall_id,
        state: query,
      }),
    ),
    ...memoriesOf(deleted).map((memory) => ofMemory(memory, "deleted", putAway(memory, "deleted"))),
    ...memoriesOf(superseded).map((memory) => ofMemory(memory, "superseded", putAway(memory, "replaced"))),
  ];
  const named = items.map((item) => (item.opens === "proposal" ? { ...item, ...lessonOf(item.proposal, proposed) } : item));
  const isKept = (item: Item) => keptStates[keyOf(workspace, item.id)] === item.state;
  const ofReason = named.filter((item) => (reason === null ? REASONS.some(({ name }) => name === item.reason) : item.reason === reason));
  const without = (name: Reason, count: number, more = false) => {
    const kept = named.filter((item) => item.reason === name && isKept(item)).length;
    return { count: Math.max(0, count - kept), more };
  };
  const lists = [report, proposals, quarantined, suspect, prune, recalls];
  return {
    items: ofReason.filter((item) => !isKept(item)),
    kept: ofReason.filter(isKept),
    counts: {
      back: without("back", alerts.length),
      harmful: without("harmful", called.length + harmful.length),
      held: without("held", (counts?.quarantined ?? 0) + (counts?.suspect ?? 0)),
      prune: without("prune", counts?.prune ?? 0),
      lesson: without("lesson", lessons.length, all.length >= MOST_PROPOSALS),
      nothing: without("nothing", asked.length, recalls.hasNextPage),
      deleted: without("deleted", counts?.deleted ?? 0),
      superseded: without("superseded", counts?.superseded ?? 0),
    },
    pages: pagesOf(reason, {
      held: [quarantined, suspect],
      prune: [prune],
      nothing: [recalls],
      deleted: [deleted],
      superseded: [superseded],
    }),
    isPending: lists.some(({ isPending }) => isPending),
    failures: lists
      .flatMap(({ error, data, refetch }) => (error && !data ? [{ error, refetch }] : []))
      .filter(({ error }, place, all) => all.findIndex((other) => other.error.message === error.message) === place),
  };
}

/** The lists that have further pages of what is shown. */
function pagesOf(reason: Reason | null, lists: Partial<Record<Reason, readonly Paged[]>>): readonly Paged[] {
  const shown = reason === null ? REASONS.flatMap(({ name }) => lists[name] ?? []) : (lists[reason] ?? []);
  return shown.filter(({ hasNextPage }) => hasNextPage);
}

function memoriesOf({ data }: { readonly data: { readonly pages: readonly MemoryPage[] } | undefined }): readonly ListedMemory[] {
  return data?.pages.flatMap(({ memories }) => memories) ?? [];
}

function ofAlert(alert: Alert): Item {
  const { case: name, title, severity, versions, state } = alert;
  const said = `${severity}, named in ${versions.join(", ")}; ${state}`;
  return {
    id: `issue ${name} ${title}`,
    reason: "back",
    title,
    said,
    facts: [name],
    when: null,
    opens: "issue",
    alert,
    state: said,
  };
}

/** `judged` tells further judgements of the memory apart. */
function ofMemory(memory: MemoryView, reason: Reason, said: string, judged = ""): Item {
  const { id, kind, source, quality, final_score: score, run_id: run } = memory;
  const facts = [
    kind,
    run ?? (source ? shortPath(source.uri) : ""),
    quality === 0 ? "" : `quality ${signed(quality)}`,
    score === null ? "" : `score ${score.toFixed(1)}`,
  ];
  const when = memory.valid_until ?? memory.occurred_at ?? memory.created_at;
  return {
    id: `${reason} ${id}`,
    reason,
    title: nameOf(memory),
    said: withMinus(said),
    facts: facts.filter(Boolean),
    when,
    opens: "memory",
    memory: id,
    kind,
    state: [said, quality, score, judged].join("\n"),
  };
}

function ofCandidate(memory: ListedMemory): Item {
  const { reason = "", ratings = [] } = memory;
  const comment = ratings.find((one) => one.comment !== "")?.comment;
  return ofMemory(memory, "prune", comment ? `${reason}: “${comment}”` : reason, `${ratings.length} ${ratings[0]?.feedback_id}`);
}

/** The name of each change that is proposed. */
export const CHANGES: Readonly<Record<string, string>> = {
  merge: "Merge",
  broaden: "Broader cue",
  procedure: "Repeated procedure",
  candidate: "Possible lesson",
  graduate: "Convention",
  retire: "Idle cue",
  stale: "Contradicted cue",
  harmful: "Harmful memory",
  note: "Note",
};

function ofProposal(proposal: ProposalView, reason: Reason): Item {
  const { id, change, created_at } = proposal;
  return {
    id: `proposal ${id}`,
    reason,
    title: capitalised(proposal.reason),
    said: "rules found it; nothing changes before you accept it",
    facts: [CHANGES[change] ?? change],
    when: created_at,
    opens: "proposal",
    proposal,
    state: proposal.reason,
  };
}

/** What a proposal is about, once the cues that are proposed are known. */
function lessonOf({ change, target_id, cue_ids, reason }: ProposalView, cues: ReadonlyMap<string, Cue>) {
  const cue = change === "harmful" ? undefined : [target_id, ...cue_ids].map((id) => cues.get(id ?? "")).find(Boolean);
  return cue ? { title: cue.lesson, said: capitalised(reason) } : {};
}

function whereFound(memory: MemoryView): string {
  const passages = passagesOf(memory);
  const what = memory.retired_as ? "in quarantine" : "out of histories";
  return `${what}: the scan found ${passages === 1 ? "1 passage" : `${passages} passages`} that may instruct its reader`;
}

function putAway({ valid_until }: MemoryView, verb: string): string {
  return valid_until ? `${verb} on ${day(valid_until)}` : verb;
}
