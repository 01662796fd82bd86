import type { ReactNode } from "react";
import { linkTo } from "../state/address";
import { Link } from "./Link";
import { Title } from "./text";

interface Props {
  readonly id: string;
  readonly title: string;
  readonly className?: string;
}

/** A memory by its title, which opens it from any place. */
export function MemoryLink({ id, title, className }: Props) {
  return (
    <Link className={className} href={linkTo("/memory", { memory: id })}>
      <Title title={title} />
    </Link>
  );
}

interface HeadProps {
  readonly id: string;
  /** Empty or null for a memory that is no longer stored. */
  readonly title: string | null;
  /** What stands at the end. */
  readonly children: ReactNode;
}

/** The first line of what was found, shown or fired. */
export function HitHead({ id, title, children }: HeadProps) {
  return (
    <div className="hit-head">
      {title ? <MemoryLink className="row-title" id={id} title={title} /> : <span className="muted">No longer stored</span>}
      {children}
    </div>
  );
}
