import type { ReactNode } from "react";
import { focusTitle } from "../state/focus";
import { Link } from "./Link";

interface Props {
  readonly href: string;
  readonly open: boolean;
  /** False where Tab reaches another line of the list. */
  readonly stop?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

/** The link of a line of a list, which opens its pane; where it is open, it moves the focus there. */
export function RowLink({ href, open, stop, className = "row", children }: Props) {
  return (
    <Link
      className={className}
      tabIndex={stop === false ? -1 : undefined}
      href={href}
      aria-current={open ? "true" : undefined}
      onClick={open ? focusTitle : undefined}
    >
      {children}
    </Link>
  );
}
