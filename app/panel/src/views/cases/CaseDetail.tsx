import { type ReactNode, useEffect, useRef } from "react";
import { useService } from "../../api/client";
import type { CaseHistory, CaseIssue, CaseVersion } from "../../api/schema";
import { Chart } from "../../parts/Chart";
import { counted, day } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Score } from "../../parts/marks";
import { PaneTitle } from "../../parts/pane";
import { Answered } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
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

function Whole({ found, issue, lead }: Omit<Props, "name"> & { readonly found: CaseHistory }) {
  const { versions, issues } = found;
  const names = versions.map(({ version }) => version);
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
            <Life key={one.id} issue={one} versions={names} asked={one.title === issue} />
          ))}
        </ol>
        <p className="muted life-legend">
          <i className="named" /> named <i className="again" /> back <i className="resolved" /> resolved <i className="silent" /> not named
        </p>
        <p className="muted">Back: named again after it was resolved, or after a version whose judgement named only others.</p>
      </section>
      {versions.length > 1 && <SideBySide versions={versions} />}
      <Versions versions={versions} />
    </article>
  );
}

const PASS = 7;

function ScoreLine({ versions }: { readonly versions: readonly CaseVersion[] }) {
  if (versions.every(({ score }) => score === null)) return <p className="muted">No version has a score.</p>;
  const points = versions.map(({ version, score }) => ({ name: version, value: score }));
  return (
    <Chart title="Score over versions;" points={points} ticks={[0, PASS, 10]} shown={(score) => String(score)} pass={PASS}>
      the line marks a pass at {PASS}
    </Chart>
  );
}

interface LifeProps {
  readonly issue: CaseIssue;
  /** The names of all versions of the case. */
  readonly versions: readonly string[];
  readonly asked: boolean;
}

function Life({ issue, versions, asked }: LifeProps) {
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
        {lifeOf(issue, versions).map(({ version, sign }) => (
          <i key={version} className={sign} title={`${version}: ${sign === "again" ? "back" : sign.replace(" after", "")}`} />
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
              <OneLine text={version.version} />
              {version.runs.map((run) => (
                <Link key={run} className="of-version" href={linkTo("/runs", { run })} title="Open its run">
                  <OneLine text={run} />
                </Link>
              ))}
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
