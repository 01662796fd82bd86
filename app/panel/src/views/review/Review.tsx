import { useEffect, useState } from "react";
import { type Action, useChange } from "../../api/changes";
import { useHeldBack, usePruneCandidates, useReviewCounts } from "../../api/memories";
import { useStatus } from "../../api/service";
import type { Memory } from "../../api/types";
import type { Selection } from "../../parts/choice";
import { day } from "../../parts/format";
import { Link } from "../../parts/Link";
import { passagesOf } from "../../parts/MarkedText";
import { Empty, Failure, Loading, More, type Paged } from "../../parts/states";
import { linkWith, useAddress } from "../../state/address";
import { Cases, type Case } from "./Cases";
import { focusNext, nextAfter } from "./current";
import { Proposals } from "./Proposals";

const TABS = [
  { name: "prune", label: "Prune candidates" },
  { name: "quarantined", label: "Quarantine" },
  { name: "suspect", label: "Suspect" },
  { name: "deleted", label: "Trash" },
  { name: "superseded", label: "Superseded" },
  { name: "cues", label: "Proposals" },
] as const;

const DAY = 24 * 60 * 60 * 1000;
/** Milliseconds. */

type Tab = (typeof TABS)[number]["name"];

/** Lists of memories that people should look at, and of those that they took out. */
export function Review() {
  const { params } = useAddress();
  const tab: Tab = TABS.find(({ name }) => name === params.get("tab"))?.name ?? "prune";
  useEffect(() => {
    document.title = "Review · Priors";
  }, []);
  return (
    <div className="review" tabIndex={-1}>
      <h1 className="visually-hidden">Review</h1>
      <nav className="tabs" aria-label="Lists to review">
        {TABS.map(({ name, label }) => (
          <Link key={name} href={linkWith({ tab: name === "prune" ? null : name })} aria-current={name === tab ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <Tabbed tab={tab} />
    </div>
  );
}

function Tabbed({ tab }: { readonly tab: Tab }) {
  if (tab === "prune") return <Prune />;
  return tab === "cues" ? <Proposals /> : <HeldBack key={tab} state={tab} />;
}

function Prune() {
  const found = usePruneCandidates();
  return (
    <Listed
      query={found}
      cases={found.data?.pages.flat()}
      total={useReviewCounts().data?.prune_candidates}
      actions={["delete"]}
      explanation="Memories with a quality of −2 or less, or with a score below 6 and a negative quality. You can restore deleted memories from the trash."
      nothing="Nothing to prune"
      next="Memories appear here after people have rated them down. Rate memories while you read them."
    />
  );
}

function whereFound(memory: Memory): string {
  const passages = passagesOf(memory);
  return passages === 1 ? "found in 1 passage" : `found in ${passages} passages`;
}

const HELD_BACK = {
  quarantined: {
    actions: ["release", "delete"],
    explanation: "The injection scan found instructions to the reader in these memories. After a release, the scan does not quarantine a memory again.",
    nothing: "Nothing is quarantined",
    next: "Report chunks with instructions to their reader appear here. No answer uses them.",
    reason: whereFound,
  },
  suspect: {
    actions: ["release", "delete"],
    explanation: "The injection scan suspects instructions to the reader in these memories. Searches find them; no history shows them until somebody releases them.",
    nothing: "Nothing is suspect",
    next: "Memories and messages with possible instructions to their reader appear here. No history shows them.",
    reason: whereFound,
  },
  deleted: {
    actions: ["restore"],
    explanation: "No answer uses these memories. They are destroyed when the trash is emptied.",
    nothing: "The trash is empty",
    next: "You can restore deleted memories from here.",
    reason: (memory: Memory, trashDays: number) => {
      if (!memory.valid_until) return "deleted";
      const expiry = new Date(Date.parse(memory.valid_until) + trashDays * DAY).toISOString();
      return `deleted on ${day(memory.valid_until)}, destroyed after ${day(expiry)}`;
    },
  },
  superseded: {
    actions: ["reinstate"],
    explanation: "A newer memory replaced these. No answer uses them.",
    nothing: "Nothing is superseded",
    next: "The old versions of edited notes, and observations that a better one replaced, appear here.",
    reason: (memory: Memory) => (memory.valid_until ? `superseded on ${day(memory.valid_until)}` : "superseded"),
  },
} as const;

function HeldBack({ state }: { readonly state: keyof typeof HELD_BACK }) {
  const found = useHeldBack(state);
  const total = useReviewCounts().data?.[state];
  const trashDays = useStatus().data?.trash_days ?? 0;
  const { actions, explanation, nothing, next, reason } = HELD_BACK[state];
  const cases = found.data?.pages.flat().map((memory) => ({ memory, reason: reason(memory, trashDays) }));
  return (
    <Listed
      query={found} cases={cases} total={total} actions={actions}
      explanation={explanation} nothing={nothing} next={next}
    />
  );
}

interface Props {
  readonly query: Paged & { readonly isError: boolean; readonly error: Error | null; readonly refetch: () => unknown };
  readonly cases: readonly Case[] | undefined;
  /** The number of all cases; those shown are the first. */
  readonly total: number | undefined;
  readonly actions: readonly Action[];
  readonly explanation: string;
  readonly nothing: string;
  readonly next: string;
}

function Listed({ query, cases, total, actions, explanation, nothing, next }: Props) {
  const [chosen, setChosen] = useState<Selection>(new Set());
  const changes = { delete: useChange("delete"), restore: useChange("restore"), reinstate: useChange("reinstate"), release: useChange("release") };
  if (query.isError) return <Failure what="The list" error={query.error} retry={query.refetch} />;
  if (!cases) return <Loading what="memories to review" />;
  if (cases.length === 0) {
    return (
      <Empty title={nothing}>
        <p>{next}</p>
      </Empty>
    );
  }
  const act = (action: Action, ids: readonly string[]) => {
    const left = (now: Selection) => new Set([...now].filter((id) => !ids.includes(id)));
    const next = nextAfter(cases.map(({ memory }) => memory.id), ids);
    changes[action].mutate(ids, {
      onSuccess: () => {
        setChosen(left);
        requestAnimationFrame(() => focusNext(next));
      },
    });
  };
  const doing = actions.find((action) => changes[action].isPending);
  return (
    <>
      <p className="explanation">{explanation}</p>
      <Cases cases={cases} total={query.hasNextPage ? total : undefined} actions={actions} chosen={chosen} choose={setChosen} act={act} doing={doing} />
      <More pages={query} />
    </>
  );
}
