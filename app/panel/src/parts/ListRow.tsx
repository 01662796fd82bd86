import type { ReactNode } from "react";
import { day } from "./format";
import { OneLine } from "./OneLine";
import { RowLink } from "./RowLink";

interface Props {
  /** The id of the line, by which keys find it. */
  readonly line: string;
  readonly href: string;
  readonly open: boolean;
  readonly stop?: boolean;
  readonly title: string;
  readonly marks?: ReactNode;
  readonly excerpt?: ReactNode;
  readonly facts: ReactNode;
  readonly when?: string | null;
}

/** A line of a list: a title with its marks, what it says, and the facts that tell it from others. */
export function ListRow({ line, href, open, stop, title, marks, excerpt, facts, when }: Props) {
  return (
    <li id={line}>
      <RowLink href={href} open={open} {...(stop === undefined ? {} : { stop })}>
        <span className="row-title">
          <OneLine text={title} />
        </span>
        <span className="row-marks">{marks}</span>
        {excerpt && (
          <span className="row-excerpt" dir="auto">
            {excerpt}
          </span>
        )}
        <span className="row-facts">
          {facts}
          {when && (
            <span className="dates">
              <time dateTime={when}>{day(when)}</time>
            </span>
          )}
        </span>
      </RowLink>
    </li>
  );
}
