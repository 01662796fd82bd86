/** What a reader changes: each act ends in a notice, most with an undo, and then all that is on the page is asked for again. */

import { useMutation } from "@tanstack/react-query";
import { several } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { answerOf, type Service, useService } from "./client";
import { refresh } from "./copies";
import type { Changed, Cue, CueEdit, MemoryPage, ProposalView } from "./schema";

interface Done {
  /** What the notice says. */
  readonly said: string;
  /** Takes the act back; returns what the notice then says. */
  readonly undo?: () => Promise<string>;
}

interface Act<Given, Answer> {
  readonly send: (given: Given, service: Service) => Promise<Answer>;
  readonly done: (answer: Answer, given: Given, service: Service) => Done;
  readonly failed: string;
}

/** It ends in the workspace in which it began, even if the address names another by then. */
function useAct<Given, Answer>({ send, done, failed }: Act<Given, Answer>) {
  const service = useService();
  return useMutation({
    mutationFn: (given: Given) => send(given, service),
    onSuccess: (answer, given) => {
      const { said, undo } = done(answer, given, service);
      const takeBack = async (back: () => Promise<string>) => {
        const undone = await back();
        void refresh(service);
        notify(undone);
      };
      notify(said, undo && (() => takeBack(undo)));
      return refresh(service);
    },
    onError: (error) => {
      notifyFailure(failed, error);
      return refresh(service);
    },
  });
}

type State = "live" | "deleted" | "quarantined";

function change({ ask }: Service, state: State, ids: readonly string[]): Promise<Changed> {
  return answerOf(ask.PATCH("/api/memories", { body: { ids, state } }));
}

const CHANGED_SINCE = "the memory has changed since, or no longer exists";
const PAGE = 200;
/** Memories of the trash, the latest first. */

/** Restores those that are in the trash now. What was restored since stays: the scan may hold it, and another restore would release it. */
async function bringBack(service: Service, ids: readonly string[]): Promise<Changed> {
  const left = new Set(ids);
  const deleted: string[] = [];
  for (let cursor: string | null = ""; cursor !== null && left.size > 0; ) {
    const query = { state: "deleted", limit: PAGE, cursor } as const;
    const page: MemoryPage = await answerOf(service.ask.GET("/api/memories", { params: { query } }));
    deleted.push(...page.memories.map(({ id }) => id).filter((id) => left.delete(id)));
    cursor = page.next;
  }
  if (deleted.length === 0) throw new Error(CHANGED_SINCE);
  const { changed, missing } = await change(service, "live", deleted);
  return { changed, missing: [...missing, ...left] };
}

function supersede({ ask }: Service, ids: readonly string[], by: string | null): Promise<Changed> {
  return answerOf(ask.PATCH("/api/memories", { body: { ids, state: "superseded", by } }));
}

/** Says what an undo took back; where that is nothing, it failed. */
function sentenceOfUndo(said: string, { changed, missing }: Changed): string {
  if (changed.length === 0) throw new Error(CHANGED_SINCE);
  return missing.length ? `${said}, except for ${several(missing.length)} that changed in the meantime` : said;
}

/** Gives memories a tag; the undo takes it from those that this changed. */
export function useTagging() {
  const send = ({ ask }: Service, way: "tag" | "untag", ids: readonly string[], tag: string) =>
    answerOf(ask.PATCH("/api/memories", { body: { ids, [way]: tag } }));
  return useAct({
    send: ({ ids, tag }: { readonly ids: readonly string[]; readonly tag: string }, service) => send(service, "tag", ids, tag),
    done: ({ changed, missing }, { tag }, service) => {
      const left = missing.length ? `; ${several(missing.length)} already had the tag or cannot have more tags` : "";
      const said = `${several(changed.length)} tagged ${tag}${left}`;
      const undo = async () => sentenceOfUndo("Tag removed", await send(service, "untag", changed, tag));
      return changed.length ? { said, undo } : { said };
    },
    failed: "Nothing was tagged",
  });
}

const CHANGES = {
  delete: { verb: "deleted", done: "deleted", back: "bringBack" },
  restore: { verb: "bringBack", done: "restored", back: "deleted" },
  /** Restores what another memory superseded. */
  reinstate: { verb: "live", done: "restored", back: "supersede" },
  release: { verb: "live", done: "released", back: "quarantined" },
} as const;

function carryOut(service: Service, verb: State | "bringBack" | "supersede", ids: readonly string[]): Promise<Changed> {
  if (verb === "supersede") return supersede(service, ids, null);
  return verb === "bringBack" ? bringBack(service, ids) : change(service, verb, ids);
}

/** Takes memories out, or brings them back; each is the other's undo. */
export function useChange(action: keyof typeof CHANGES) {
  const { verb, done, back } = CHANGES[action];
  return useAct({
    send: (ids: readonly string[], service) => carryOut(service, verb, ids),
    done: ({ changed, missing }, _ids, service) => {
      const said = `${several(changed.length)} ${done}${missing.length ? `; ${several(missing.length)} could not be ${done}` : ""}`;
      const undo = () => carryOut(service, back, changed);
      return changed.length ? { said, undo: async () => sentenceOfUndo("Change undone", await undo()) } : { said };
    },
    failed: `Nothing was ${done}`,
  });
}

interface Note {
  readonly title: string;
  readonly body: string;
  readonly tags: readonly string[];
}

/** Stores a note, or a new version of one that it then replaces; resolves to the id under which it is stored. */
export function useSaveNote(edited: string | undefined) {
  return useAct({
    send: async (note: Note, service) => {
      const [id] = (await answerOf(service.ask.POST("/api/memories", { body: { kind: "note", ...note } }))).ids;
      if (!id) throw new Error("the service did not store it");
      if (edited && edited !== id) await supersede(service, [edited], id);
      return id;
    },
    done: (id, _note, service) => ({
      said: edited ? "Saved as a new version" : "Note saved",
      undo: async () => {
        await change(service, "deleted", [id]);
        if (edited) await change(service, "live", [edited]);
        return edited ? "The old version is back" : "Note deleted";
      },
    }),
    failed: "The note could not be saved",
  });
}

const CUES = { retire: "retired", restore: "restored", accept: "accepted" } as const;
export type CueAction = keyof typeof CUES;

function editCue({ ask }: Service, cue_id: string, body: CueEdit) {
  return ask.PATCH("/api/cues/{cue_id}", { params: { path: { cue_id } }, body });
}

/** Changes the state of a cue; the undo gives it the one that it had, with the cue that held in its place. */
export function useCueAction(action: CueAction) {
  return useAct({
    send: async (cue_id: string, service) => {
      const before: Cue = await answerOf(service.ask.GET("/api/cues/{cue_id}", { params: { path: { cue_id } } }));
      await editCue(service, cue_id, { state: action === "retire" ? "retired" : "active" });
      return before;
    },
    done: ({ id, state, superseded_by, valid_until }, _id, service) => ({
      said: `1 cue ${CUES[action]}`,
      undo: async () => {
        // What was restored and has no successor was in the trash, also if it is proposed.
        const back = action === "restore" && !superseded_by ? "retired" : (state as NonNullable<CueEdit["state"]>);
        await editCue(service, id, { state: back, ...(superseded_by && { superseded_by, valid_until }) });
        return "The cue is as it was";
      },
    }),
    failed: `The cue was not ${CUES[action]}`,
  });
}

/** Gives a cue new values of some fields; the undo gives it the old ones. */
export function useEditCue(cue: Cue) {
  return useAct({
    send: (changes: CueEdit, service) => editCue(service, cue.id, changes),
    done: (_answer, changes, service) => ({
      said: "Cue saved",
      undo: async () => {
        const names = Object.keys(changes) as readonly (keyof CueEdit)[];
        await editCue(service, cue.id, Object.fromEntries(names.map((name) => [name, cue[name]])));
        return "The old values are back";
      },
    }),
    failed: "The cue could not be saved",
  });
}

interface Decision {
  readonly proposal: ProposalView;
  readonly accept: boolean;
  /** The file that holds the convention that a cue becomes. */
  readonly artifact: string;
}

/** Accepts a proposal or declines it; either can be taken back. */
export function useDecision() {
  const params = ({ proposal }: Decision) => ({ path: { proposal_id: proposal.id } });
  return useAct({
    send: ({ accept, artifact, ...rest }: Decision, { ask }) =>
      ask.PATCH("/api/proposals/{proposal_id}", {
        params: params({ accept, artifact, ...rest }),
        body: { state: accept ? "accepted" : "declined", artifact },
      }),
    done: (_answer, decision, { ask }) => ({
      said: decision.accept ? "Proposal accepted" : "Proposal declined",
      undo: async () => {
        await ask.PATCH("/api/proposals/{proposal_id}", { params: params(decision), body: { state: "undone" } });
        return decision.accept ? "The cues are as they were; the proposal is open again" : "The proposal is open again";
      },
    }),
    failed: "The proposal was not decided",
  });
}
