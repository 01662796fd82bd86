import { type ReactNode, useEffect, useRef } from "react";
import { useService } from "../../api/client";
import type { CaseIssueView, CaseVersion, CaseView } from "../../api/schema";
import { counted, day, decimal } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Score } from "../../parts/marks";
import { PaneTitle } from "../../parts/pane";
import { Answered } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useWidth } from "../../state/width";
import { lifeOf, recurrence } from "./life";
import { SideBySide } from "./SideBySide";

interface Props {
  readonly name: string;
  /** The title of the issue that is looked at. */
  readonly issue?: string;
  readonly lead?: ReactNode;
}

/** A case over its versions: the score, each issue's life, and two versions side by side. */
export function CaseDetail({ name, issue, lead }: Props) {
  const found = useService().useQuery("get", "/api/cases/{case}", { params: { path: { case: name } } });
  return (
    <Answered query={found} name="case">
      {(data) => <Whole found={data} lead={lead} {...(issue === undefined ? {} : { issue })} />}
    </Answered>
  );
}

function Whole({ found, issue, lead }: Omit<Props, "name"> & { readonly found: CaseView }) {
  const { versions, issues } = found;
  const ordered = [...issues].sort((one, other) => recurrence(other) - recurrence(one));
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={issue ?? (found.title || found.case)} />
        </PaneTitle>
        <p className="row-facts">
          <Link href={linkTo("/cases", { case: found.case })}>{found.case}</Link>
          <span>{counted(versions.length, "version", "versions")}</span>
          <span>{counted(issues.length, "issue", "issues")}</span>
        </p>
        {lead}
      </header>
      <ScoreLine versions={versions} />
      <section>
        <h3>Issues, those that came back most first</h3>
        {ordered.length === 0 && <p className="muted">No judgement faults anything.</p>}
        <ol className="lives" aria-label="Issues">
          {ordered.map((one) => (
            <Life key={one.id} issue={one} versions={versions} asked={one.title === issue} />
          ))}
        </ol>
        <p className="muted life-legend">
          <i className="named" /> named <i className="again" /> back <i className="resolved" /> resolved <i className="silent" /> not named
        </p>
      </section>
      {versions.length > 1 && <SideBySide versions={versions} />}
      <Versions versions={versions} />
    </article>
  );
}

const HEIGHT = 120;
const MARGIN = { top: 8, right: 12, bottom: 20, left: 24 };
const PASS = 7;
const LABEL = 44;
/** Pixels of a version's name below the line. */

function ScoreLine({ versions }: { readonly versions: readonly CaseVersion[] }) {
  const [width, frame] = useWidth();
  const x = (place: number) => MARGIN.left + ((width - MARGIN.left - MARGIN.right) * (place + 0.5)) / Math.max(1, versions.length);
  const y = (score: number) => MARGIN.top + ((10 - score) / 10) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const points = versions.flatMap((version, place) => (version.score === null ? [] : [{ version, score: version.score, x: x(place) }]));
  const every = Math.max(1, Math.ceil((versions.length * LABEL) / Math.max(1, width)));
  if (points.length === 0) return <p className="muted">No version has a score.</p>;
  return (
    <figure className="plot" ref={frame}>
      <figcaption>Score over versions; the line marks a pass at {PASS}</figcaption>
      <svg
        width={width}
        height={HEIGHT}
        role="group"
        aria-label={`Scores: ${points.map(({ version, score }) => `${version.version} ${decimal(score, 1)}`).join(", ")}`}
      >
        {[0, PASS, 10].map((tick) => (
          <g key={tick} className={tick === PASS ? "tick pass" : "tick"}>
            <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
            <text x={MARGIN.left - 6} y={y(tick)} dy="0.32em" textAnchor="end">
              {tick}
            </text>
          </g>
        ))}
        {versions.map(
          ({ version }, place) =>
            place % every === 0 && (
              <text key={version} x={x(place)} y={HEIGHT - 4} textAnchor="middle">
                {version}
              </text>
            ),
        )}
        <path className="mean" d={points.map((point, place) => `${place ? "L" : "M"}${point.x},${y(point.score)}`).join("")} />
        {points.map(({ version, score, x: at }) => (
          <circle key={version.version} className={score >= PASS ? "passed" : "failed"} cx={at} cy={y(score)} r={4}>
            <title>{`${version.version}: ${decimal(score, 1)} ${version.verdict}`}</title>
          </circle>
        ))}
      </svg>
    </figure>
  );
}

function Life({
  issue,
  versions,
  asked,
}: {
  readonly issue: CaseIssueView;
  readonly versions: readonly CaseVersion[];
  readonly asked: boolean;
}) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (asked) line.current?.scrollIntoView({ block: "nearest" });
  }, [asked]);
  const back = issue.reopened_in.length ? `came back in ${issue.reopened_in.join(", ")}` : "";
  return (
    <li ref={line} className={asked ? "asked" : ""}>
      <p>
        {issue.severity && <strong className={`severity ${issue.severity}`}>{issue.severity}</strong>} <OneLine text={issue.title} />
      </p>
      <span className="life" role="img" aria-label={`Named in ${issue.versions.join(", ")}${back && `; ${back}`}; ${issue.state}`}>
        {lifeOf(
          issue,
          versions.map(({ version }) => version),
        ).map(({ version, sign }) => (
          <i key={version} className={sign} title={`${version}: ${sign === "again" ? "back" : sign}`} />
        ))}
      </span>
      <p className="row-facts">
        <span>{issue.state}</span>
        <span>named in {issue.versions.join(", ")}</span>
        {back && <span className="bad">{back}</span>}
      </p>
    </li>
  );
}

function Versions({ versions }: { readonly versions: readonly CaseVersion[] }) {
  return (
    <section>
      <h3>Versions, the latest first</h3>
      <ul className="left">
        {[...versions].reverse().map((version) => (
          <li key={version.version}>
            <span className="row-title">
              {version.runs.length > 0 ? (
                version.runs.map((run) => (
                  <Link key={run} href={linkTo("/runs", { run })} title="Open its run">
                    {version.version}
                  </Link>
                ))
              ) : (
                <OneLine text={version.version} />
              )}
              {version.summary && <span className="above"> {version.summary}</span>}
            </span>
            <span className="row-marks">
              <span className="verdict">{version.verdict}</span>
              <Score value={version.score} />
              {version.judged_at && <time dateTime={version.judged_at}>{day(version.judged_at)}</time>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
