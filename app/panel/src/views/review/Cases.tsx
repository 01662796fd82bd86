import { useEffect, useRef } from "react";
import { type Action } from "../../api/changes";
import { useRate } from "../../api/ratings";
import type { Memory, Rating } from "../../api/types";
import { type Selection, usePicking } from "../../parts/choice";
import { excerptOf } from "../../parts/excerpt";
import { shortPath, times, whole, withMinus } from "../../parts/format";
import { Icon, type IconName } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { Title } from "../../parts/Marked";
import { Quality, Score } from "../../parts/marks";
import { findingsOf, MarkedText } from "../../parts/MarkedText";
import { PickBox } from "../../parts/PickBox";
import { RatingWords } from "../../parts/RatingWords";
import { Working } from "../../parts/states";
import { linkTo } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { lineOf, useCurrent } from "./current";

export interface Case {
  readonly memory: Memory;
  readonly reason: string;
  /** Ratings with a comment, the latest first. */
  readonly comments?: readonly Rating[];
}

const NAMES: Readonly<Record<Action, { readonly label: string; readonly doing: string; readonly icon: IconName }>> = {
  delete: { label: "Delete", doing: "Deleting", icon: "trash" },
  restore: { label: "Restore", doing: "Restoring", icon: "restore" },
  reinstate: { label: "Restore", doing: "Restoring", icon: "restore" },
  release: { label: "Release", doing: "Releasing", icon: "restore" },
};

interface Props {
  readonly cases: readonly Case[];
  readonly total: number | undefined;
  readonly actions: readonly Action[];
  readonly chosen: Selection;
  readonly choose: (chosen: Selection) => void;
  readonly act: (action: Action, ids: readonly string[]) => void;
  readonly doing: Action | undefined;
}

export function Cases({ cases, total, actions, chosen, choose, act, doing }: Props) {
  const ids = cases.map(({ memory }) => memory.id);
  const present = ids.filter((id) => chosen.has(id));
  const pick = usePicking(ids, chosen, choose);
  const [current, move] = useCurrent(ids);
  const rate = useRate();
  const judge = (rating: 1 | -1) => {
    if (current) rate.mutate({ id: current, rating, comment: "" });
  };
  const pickCurrent = (range: boolean) => {
    if (current) pick(current, range);
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    u: () => judge(1),
    d: () => judge(-1),
    x: () => pickCurrent(false),
    X: () => pickCurrent(true),
    Escape: () => choose(new Set()),
  });
  return (
    <>
      <div className="bulk">
        <label>
          <input
            type="checkbox"
            checked={present.length === cases.length}
            ref={(box) => {
              if (box) box.indeterminate = present.length > 0 && present.length < cases.length;
            }}
            onChange={(event) => choose(event.target.checked ? new Set(ids) : new Set())}
          />
          {present.length ? `${whole(present.length)} of ${whole(cases.length)} selected` : allOf(cases.length, total)}
        </label>
        {doing && <Working what={NAMES[doing].doing} />}
        {actions.map((action) => (
          <button
            key={action}
            type="button"
            className={action === "delete" ? "danger" : "primary"}
            disabled={doing !== undefined || present.length === 0}
            onClick={() => act(action, present)}
          >
            <Icon name={NAMES[action].icon} />
            {NAMES[action].label}
          </button>
        ))}
      </div>
      <ol className="cases">
        {cases.map((one) => (
          <CaseLine
            key={one.memory.id}
            {...one}
            chosen={chosen.has(one.memory.id)}
            current={one.memory.id === current}
            pick={(range) => pick(one.memory.id, range)}
          />
        ))}
      </ol>
    </>
  );
}

function allOf(shown: number, total = shown): string {
  return total > shown ? `Select the first ${whole(shown)} of ${whole(total)}` : `Select all ${whole(shown)}`;
}

interface LineProps extends Case {
  readonly chosen: boolean;
  readonly current: boolean;
  readonly pick: (range: boolean) => void;
}

function CaseLine({ memory, reason, comments, chosen, current, pick }: LineProps) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (current) line.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const title = memory.title || excerptOf(memory.body, "", []);
  return (
    <li ref={line} id={lineOf(memory.id)} aria-current={current ? "true" : undefined} className={`case ${chosen ? "chosen" : ""} ${current ? "current" : ""}`}>
      <PickBox title={title} chosen={chosen} pick={pick} />
      <div className="case-main">
        <div className="case-head">
          <Link className="row-title" href={linkTo("/", { memory: memory.id })}>
            <Title title={title} />
          </Link>
          <span className="row-marks">
            <Quality value={memory.quality} />
            <Score value={memory.final_score} />
          </span>
        </div>
        <p className="row-facts">
          <span className="kind">{memory.kind}</span>
          {memory.source && <span title={memory.source.uri}>{shortPath(memory.source.uri)}</span>}
          <span className="reason">{withMinus(reason)}</span>
          {(comments || memory.uses > 0) && <span>{memory.uses > 0 ? `used in outputs ${times(memory.uses)}` : "not used in outputs"}</span>}
        </p>
        {findingsOf(memory).length > 0 ? (
          <MarkedText memory={memory} />
        ) : (
          <p className="excerpt" dir="auto">
            {memory.observation?.narrative || memory.body}
          </p>
        )}
        {comments && comments.length > 0 && (
          <ul className="ratings" aria-label="Comments">
            {comments.map((rating) => (
              <li key={rating.feedback_id}>
                <RatingWords rating={rating} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}
