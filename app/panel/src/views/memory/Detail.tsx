import { type ReactNode, useState } from "react";
import { useChange } from "../../api/acts";
import { useMemory } from "../../api/queries";
import type { MemoryView } from "../../api/schema";
import { nameOf } from "../../parts/excerpt";
import { Findings } from "../../parts/Findings";
import { exactMoment, times } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Score, Verdict } from "../../parts/marks";
import { Details, OpenedPane, PaneTitle } from "../../parts/pane";
import { Working } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { useSubject } from "../../state/tried";
import { Content } from "./Content";
import { CueDetail } from "./cue/CueDetail";
import { Judging } from "./Judging";
import { Links } from "./Links";
import { NoteForm } from "./NoteForm";
import { Chain, Place } from "./Provenance";
import { linkToTurn } from "./session/asked";
import { TakeBack } from "./TakeBack";

interface Props {
  readonly id: string;
  readonly onClose: () => void;
  /** What the place says of it and lets one do with it. */
  readonly lead?: ReactNode;
}

/** One memory with everything around it. */
export function Detail({ id, onClose, lead }: Props) {
  return (
    <OpenedPane name="memory" query={useMemory(id)} onClose={onClose}>
      {(memory) => <Whole memory={memory} lead={lead} />}
    </OpenedPane>
  );
}

type Doing = "edit" | "take back" | null;

function Whole({ memory, lead }: { readonly memory: MemoryView; readonly lead: ReactNode }) {
  const [doing, setDoing] = useState<Doing>(null);
  useShortcuts({ b: () => setDoing("take back") });
  useSubject(memory.kind === "cue" ? memory.title : memory.body.slice(0, TRIED));
  if (doing === "edit") return <NoteForm note={memory} onClose={() => setDoing(null)} />;
  if (doing === "take back") return <TakeBack memory={memory} onClose={() => setDoing(null)} />;
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={nameOf(memory)} />
        </PaneTitle>
        <Facts memory={memory} />
        {lead}
        <HeldBack memory={memory} decided={lead !== undefined} />
        <p className="note-actions">
          {!memory.retired_as && (
            <button type="button" title="Take it back with all that says the same (b)" onClick={() => setDoing("take back")}>
              Take back …
            </button>
          )}
          {memory.kind === "note" && !memory.source && !memory.retired_as && (
            <button type="button" onClick={() => setDoing("edit")}>
              Edit
            </button>
          )}
          {memory.source?.kind === "session" && (
            <Link className="button" href={linkToTurn(memory.source.uri, memory.ordinal)}>
              Open the session
            </Link>
          )}
          <Link className="button" href={linkTo("/service", { part: "audit", id: memory.id })}>
            Who changed it
          </Link>
        </p>
      </header>
      <Judging memory={memory} decided={lead !== undefined} />
      <Findings memory={memory} />
      {memory.kind === "cue" ? <CueDetail id={memory.id} decided={lead !== undefined} /> : <Content memory={memory} />}
      <Place memory={memory} />
      <Links id={memory.id} />
      <Chain memory={memory} />
      <Origin memory={memory} />
    </article>
  );
}

const TRIED = 500;
/** Characters of a memory that a trial begins with. */

function Facts({ memory }: { readonly memory: MemoryView }) {
  const { observation, access_count: recalled } = memory;
  return (
    <p className="row-facts">
      <span className="kind">{memory.kind}</span>
      {observation?.task_type && <span>{observation.task_type}</span>}
      <Verdict value={observation?.verdict} />
      {memory.final_score !== null && (
        <span>
          evaluator's score <Score value={memory.final_score} />
        </span>
      )}
      <span>{recalled === 0 ? "never recalled" : `recalled ${times(recalled)}`}</span>
      <time dateTime={memory.occurred_at ?? memory.created_at}>{exactMoment(memory.occurred_at ?? memory.created_at)}</time>
    </p>
  );
}

const STATES: Readonly<Record<string, string>> = {
  gone: "This text is no longer in its source. No answer uses this memory.",
  deleted: "This memory is deleted. No answer uses it. You can restore it until the trash is emptied.",
  superseded: "A newer memory replaced this one. No answer uses it.",
  quarantined: "The injection scan quarantined this memory. No answer uses it until somebody releases it.",
  suspect: "The injection scan suspects an instruction to the reader. No history shows this memory until somebody releases it.",
};

/** Says why answers leave the memory out, with the means to change that where the place has none. */
function HeldBack({ memory, decided }: { readonly memory: MemoryView; readonly decided: boolean }) {
  const state = memory.retired_as ?? (memory.suspect ? "suspect" : "");
  const scanned = state === "quarantined" || state === "suspect";
  const restore = useChange(scanned ? "release" : state === "superseded" ? "reinstate" : "restore");
  // A cue is restored by its own button: that makes it fire again, too.
  if (state === "" || (memory.kind === "cue" && !scanned)) return null;
  return (
    <p className="retired">
      <span>{STATES[state] ?? state}</span>
      {restore.isPending && <Working what={scanned ? "Releasing" : "Restoring"} />}
      {state !== "gone" && !decided && (
        <button type="button" disabled={restore.isPending} onClick={() => restore.mutate([memory.id])}>
          {scanned ? "Release" : "Restore"}
        </button>
      )}
    </p>
  );
}

function Origin({ memory }: { readonly memory: MemoryView }) {
  const { observation } = memory;
  return (
    <Details
      facts={[
        ["Stored", exactMoment(memory.created_at)],
        ["Event", memory.occurred_at && exactMoment(memory.occurred_at)],
        ["Retired", memory.valid_until && exactMoment(memory.valid_until)],
        ["Task", observation?.task],
        ["Output", observation?.output_path],
        ["Compression", observation && [observation.compressor, observation.model].filter(Boolean).join(", ")],
        [
          "Tags",
          memory.tags.length > 0 &&
            memory.tags.map((tag) => (
              <Link key={tag} className="chip" href={linkTo("/memory", { tag })}>
                <OneLine text={tag} />
              </Link>
            )),
        ],
        ["User", memory.user],
        ["Language", memory.language],
        ["Tokens", String(memory.tokens)],
        ["ID", memory.id],
      ]}
      metadata={memory.metadata}
    />
  );
}
