import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { capitalised } from "./format";
import { Icon } from "./Icon";
import { Answered } from "./states";

interface PaneProps {
  readonly label: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The pane beside a list, with the button that closes it. */
export function DetailPane({ label, onClose, children }: PaneProps) {
  return (
    <aside className="pane-detail" aria-label={label} tabIndex={-1}>
      <button type="button" className="icon close" onClick={onClose} title="Close (Esc)">
        <Icon name="close" label="Close" />
      </button>
      {children}
    </aside>
  );
}

interface OpenedProps<T> {
  /** The word for what is open, in lower case. */
  readonly name: string;
  readonly query: UseQueryResult<T>;
  readonly onClose: () => void;
  readonly children: (opened: T) => ReactNode;
}

/** The pane with what was opened, once it is loaded. */
export function OpenedPane<T>({ name, query, onClose, children }: OpenedProps<T>) {
  return (
    <DetailPane label={capitalised(name)} onClose={onClose}>
      <Answered query={query} name={name}>
        {children}
      </Answered>
    </DetailPane>
  );
}
