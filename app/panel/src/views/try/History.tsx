import { useService } from "../../api/client";
import { ONCE } from "../../api/queries";
import type { HistoryView } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { nameOf } from "../../parts/excerpt";
import { milliseconds, share, whole } from "../../parts/format";
import { Hits } from "../../parts/ScoreBar";
import { Answered } from "../../parts/states";
import type { Tried } from "../../state/tried";

/** The memories that a query gets, and the Markdown that goes into the prompt. */
export function History({ asked: { text, agent, option, budget } }: { readonly asked: Tried }) {
  const body = { query: text, agent: agent || null, preset: option || "default", trial: true, ...(budget && { budget_tokens: budget }) };
  const answer = useService().useQuery("post", "/api/history", { body }, ONCE);
  return (
    <section className={`answer ${answer.isPlaceholderData ? "stale" : ""}`} aria-label="History">
      <Answered query={answer} name="answer">
        {(history) => <Given history={history} />}
      </Answered>
    </section>
  );
}

function Given({ history }: { readonly history: HistoryView }) {
  const { hits, degraded, probability, markdown } = history;
  return (
    <>
      <p className="row-facts">
        <span className={`mode ${degraded.length ? "degraded" : ""}`}>{history.mode}</span>
        <span>{whole(history.tokens)} tokens</span>
        {probability !== null && <span>speaks to the query: {share(probability)}</span>}
        <span>{milliseconds(history.took_ms)}</span>
      </p>
      {degraded.map(({ arm, reason }) => (
        <p key={arm} className="degradation">
          {arm}: {reason}
        </p>
      ))}
      {hits.length === 0 && <p className="muted">{reasonForNothing(history)} The agent gets no history.</p>}
      <Hits hits={hits.map((hit) => ({ ...hit, title: nameOf(hit) }))} />
      {markdown !== "" && <Copied title="Markdown for the agent" text={markdown} />}
    </>
  );
}

function reasonForNothing({ needed_tokens }: HistoryView): string {
  if (needed_tokens === null) return "No stored memory is relevant enough.";
  return `The token budget is too small: the best hit needs ${whole(needed_tokens)} tokens.`;
}
