import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useChange } from "../../api/acts";
import { answerOf, type Service, useService } from "../../api/client";
import { useMemory } from "../../api/queries";
import type { MemoryView, SayingView } from "../../api/schema";
import { excerptOf, nameOf } from "../../parts/excerpt";
import { several, shortPath } from "../../parts/format";
import { Link } from "../../parts/Link";
import { toggled } from "../../parts/list";
import { PaneTitle } from "../../parts/pane";
import { Answered, Working } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useDraft } from "../../state/draft";
import { useShortcuts } from "../../state/shortcuts";

const WHY: Readonly<Record<SayingView["why"], string>> = {
  chosen: "what you chose",
  copy: "the same text",
  holds: "says it, and more",
  near: "nearly the same words",
  cue: "a cue that quotes it",
  quote: "what a cue quotes",
  derived: "derived of it",
};

interface Props {
  readonly memory: MemoryView;
  readonly onClose: () => void;
}

/** Everything that says the same as a memory, taken back in one act; then the proof, asked of the service. */
export function TakeBack({ memory, onClose }: Props) {
  const [phrase, setPhrase, forget] = useDraft(`wrong ${memory.id}`, "");
  const [meant, setMeant] = useState("");
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [taken, setTaken] = useState<TakenBack | null>(null);
  const same = useService().useQuery("get", "/api/memories/{memory_id}/same", {
    params: { path: { memory_id: memory.id }, query: { phrase: meant } },
  });
  const remove = useChange("delete");
  const found = same.data?.found ?? [];
  const going = found.filter(({ memory: { id } }) => !left.has(id));
  const ids = going.map(({ memory: { id } }) => id);
  const done = ({ changed }: Pick<TakenBack, "changed">) => {
    forget();
    setTaken({ sayings: going, changed });
  };
  const act = () => remove.mutate(ids, { onSuccess: done });
  useShortcuts({ Escape: onClose });
  if (taken) return <Taken memory={memory} phrase={meant} {...taken} onClose={onClose} />;
  return (
    <article aria-label="Take back">
      <header className="detail-head">
        <PaneTitle>Take back what says the same</PaneTitle>
        <p className="muted">
          A search hides equal texts: as long as one of these stays, it takes the place of the others. You can undo it.
        </p>
        <form
          className="judging-line"
          onSubmit={(event) => {
            event.preventDefault();
            setMeant(phrase.trim());
          }}
        >
          <input
            aria-label="What of it is wrong"
            placeholder="All of it; or the words that are wrong, then Enter"
            dir="auto"
            maxLength={2000}
            value={phrase}
            onChange={(event) => setPhrase(event.target.value)}
          />
        </form>
      </header>
      <Answered query={same} name="list of what says the same">
        {({ more }) => (
          <>
            <ul className="same" aria-label="What says the same">
              {found.map((one) => (
                <Line
                  key={one.memory.id}
                  saying={one}
                  chosen={!left.has(one.memory.id)}
                  toggle={() => setLeft(toggled(left, one.memory.id))}
                />
              ))}
            </ul>
            {more && <p role="status">These are not all: take them back, then ask again.</p>}
            <p className="note-actions">
              {/* It has the focus once the list is there, so that Enter acts. */}
              <button type="button" autoFocus className="danger" disabled={remove.isPending || going.length === 0} onClick={act}>
                Take back {several(going.length)}
              </button>
              <button type="button" onClick={onClose}>
                Cancel
              </button>
              {remove.isPending && <Working what="Taking back" />}
            </p>
          </>
        )}
      </Answered>
    </article>
  );
}

interface LineProps {
  readonly saying: SayingView;
  readonly chosen: boolean;
  readonly toggle: () => void;
}

function Line({ saying: { memory, why }, chosen, toggle }: LineProps) {
  const title = nameOf(memory);
  return (
    <li>
      <label>
        <input type="checkbox" checked={chosen} onChange={toggle} />
        <span>
          <OneLine text={title} /> {memory.title && <span className="above">{excerptOf(memory.body, title, [])}</span>}
          <span className="row-facts">
            <span className="kind">{memory.kind}</span>
            <span>{WHY[why]}</span>
            {memory.source && <span>{shortPath(memory.source.uri)}</span>}
            {memory.retired_as && <span>{memory.retired_as} already</span>}
          </span>
        </span>
      </label>
    </li>
  );
}

interface TakenBack {
  readonly sayings: readonly SayingView[];
  /** The memories that were deleted by it; others were deleted before. */
  readonly changed: readonly string[];
}

interface TakenProps extends Props, TakenBack {
  readonly phrase: string;
}

function Taken({ memory, phrase, sayings, changed, onClose }: TakenProps) {
  const query = phrase || excerptOf(memory.body, "", []);
  const plan = sayings.find(({ memory: { kind } }) => kind === "cue")?.memory.title || query;
  const restore = useChange("restore");
  const first = useMemory(changed[0] ?? memory.id).data;
  const restored = first !== undefined && first.retired_as !== "deleted";
  const proof = useProof({ query, plan, wrong: sayings.map((one) => one.memory), restored });
  return (
    <article aria-label="Taken back">
      <header className="detail-head">
        <PaneTitle>
          {several(changed.length)} taken back{restored && ", and restored again"}
        </PaneTitle>
      </header>
      <section aria-live="polite">
        <h3>Proof, asked of the service</h3>
        <Answered query={proof} name="proof">
          {({ shown, fired }) => (
            <ul className="proof">
              <li className={shown.length ? "bad" : "good"}>
                history for “<OneLine text={query} />
                ”: {shown.length ? "still shown" : "no longer shown"}
                <Still ids={shown} />
              </li>
              <li className={fired.length ? "bad" : "good"}>
                plan “<OneLine text={plan} />
                ”: {fired.length ? "still fires" : "no longer fires"}
                <Still ids={fired} />
              </li>
            </ul>
          )}
        </Answered>
      </section>
      <p className="note-actions">
        {!restored && changed.length > 0 && (
          <button type="button" disabled={restore.isPending} onClick={() => restore.mutate(changed, { onSuccess: onClose })}>
            Undo
          </button>
        )}
        <button type="button" className="primary" onClick={onClose}>
          Done
        </button>
      </p>
    </article>
  );
}

function Still({ ids }: { readonly ids: readonly string[] }) {
  return ids.map((id) => (
    <span key={id}>
      {" "}
      <Link href={linkTo("/memory", { memory: id })}>Open what says it</Link>
    </span>
  ));
}

interface Asked {
  readonly query: string;
  readonly plan: string;
  /** What was taken back. */
  readonly wrong: readonly MemoryView[];
  /** The proof that it is gone is none once it is back. */
  readonly restored: boolean;
}

const HITS = 10;

function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}

/** What still says it: memories of the history, and cues that the plan fires. */
async function prove({ query, plan, wrong }: Asked, { ask }: Service, signal: AbortSignal) {
  const [history, activation] = await Promise.all([
    answerOf(ask.POST("/api/history", { body: { query, k: HITS, budget_tokens: 4_000, trial: true }, signal })),
    answerOf(ask.POST("/api/activate", { body: { plan, trial: true }, signal })),
  ]);
  const texts = wrong.map(({ body }) => plain(body)).filter(Boolean);
  const says = (id: string, text: string) => wrong.some((one) => one.id === id) || texts.some((one) => plain(text).includes(one));
  return {
    shown: history.hits.filter(({ id, body }) => says(id, body)).map(({ id }) => id),
    fired: activation.cues.filter(({ id, imperative }) => says(id, imperative)).map(({ id }) => id),
  };
}

function useProof(asked: Asked) {
  const service = useService();
  return useQuery({
    // A key like those of its routes: each change asks for it again.
    queryKey: ["post", "/api/history", { proof: asked }],
    queryFn: ({ signal }) => prove(asked, service, signal),
    staleTime: 0,
  });
}
