import { useMemo } from "react";
import { useService } from "../../../api/client";
import type { SessionCueView, SessionDetailView } from "../../../api/schema";
import { duration, exactMoment, whole } from "../../../parts/format";
import { Link } from "../../../parts/Link";
import { MemoryLink } from "../../../parts/MemoryLink";
import { OpenedPane, PaneTitle } from "../../../parts/pane";
import { OneLine } from "../../../parts/text";
import { linkWith } from "../../../state/address";
import { Kind } from "../cue/words";
import { Turn } from "./Turn";

interface Props {
  readonly id: string;
  readonly turn: number | null;
  readonly onClose: () => void;
}

/** A session: what it taught, the files that it changed, and its transcript. */
export function SessionDetail({ id, turn, onClose }: Props) {
  return (
    <OpenedPane
      name="session"
      query={useService().useQuery("get", "/api/sessions/{session_id}", { params: { path: { session_id: id } } })}
      onClose={onClose}
    >
      {(session) => <Whole session={session} turn={turn} />}
    </OpenedPane>
  );
}

function Whole({ session, turn }: Pick<Props, "turn"> & { readonly session: SessionDetailView }) {
  const cues = useMemo(() => Map.groupBy(session.cues, ({ message }) => message), [session.cues]);
  return (
    <article className="session">
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={session.title || session.id} />
        </PaneTitle>
        <Facts session={session} />
      </header>
      <Learnt cues={session.cues} />
      <section className="transcript" aria-label="Transcript">
        <h3>Transcript</h3>
        <ol>
          {session.messages.map((message) => (
            <Turn key={message.ordinal} message={message} cues={cues.get(message.ordinal) ?? NONE} asked={message.ordinal === turn} />
          ))}
        </ol>
      </section>
    </article>
  );
}

const NONE: readonly SessionCueView[] = [];

function Facts({ session: { id, format, started_at, ended_at, messages } }: { readonly session: SessionDetailView }) {
  const took = started_at && ended_at ? Date.parse(ended_at) - Date.parse(started_at) : 0;
  return (
    <p className="row-facts">
      <span className="kind">
        <OneLine text={id} />
      </span>
      <span>{format}</span>
      <span>{messages.length === 1 ? "1 turn" : `${whole(messages.length)} turns`}</span>
      {took > 0 && <span>{duration(took)}</span>}
      {started_at && <time dateTime={started_at}>{exactMoment(started_at)}</time>}
    </p>
  );
}

function Learnt({ cues }: { readonly cues: readonly SessionCueView[] }) {
  return (
    <section>
      <h3>Cues</h3>
      {cues.length === 0 && <p className="muted">Nothing lasting was found in this session.</p>}
      <ul className="learnt">
        {cues.map((cue) => (
          <li key={cue.id}>
            <Kind kind={cue.kind} /> <MemoryLink id={cue.id} title={cue.lesson} />{" "}
            {cue.message !== null && (
              <Link className="turn-link" href={linkWith({ turn: String(cue.message) })} replace>
                turn {cue.message}
              </Link>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
