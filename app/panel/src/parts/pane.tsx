/** The pane beside a list: what is open in it, its title, its forms and its facts. */

import type { UseQueryResult } from "@tanstack/react-query";
import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import { useTitleFocus } from "../state/focus";
import { capitalised } from "./format";
import { Icon } from "./Icon";
import { Answered, Working } from "./states";

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

/** The title of a pane; it gets the focus when the pane is opened. */
export function PaneTitle({ children }: { readonly children: ReactNode }) {
  return (
    <h2 ref={useTitleFocus()} tabIndex={-1}>
      {children}
    </h2>
  );
}

interface PaneFormProps {
  readonly title: string;
  /** The label of the button that saves. */
  readonly action?: string;
  /** True if the fields can be saved. */
  readonly ready: boolean;
  readonly saving: boolean;
  readonly submit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The fields of what is open. Ctrl or Cmd with Enter saves from each of them. */
export function PaneForm({ title, action = "Save", ready, saving, submit, onClose, children }: PaneFormProps) {
  const submitted = (event: FormEvent) => {
    event.preventDefault();
    // Keys send a form whose button is disabled, too.
    if (ready && !saving) submit();
  };
  const keyed = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <form className="note-form" onSubmit={submitted} onKeyDown={keyed}>
      <PaneTitle>{title}</PaneTitle>
      {children}
      <p className="note-actions">
        <button type="submit" className="primary" disabled={saving || !ready}>
          {action}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {saving && <Working what="Saving" />}
      </p>
    </form>
  );
}

interface FactsProps {
  readonly className?: string;
  /** Names and values; a fact without a value is left out. */
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
}

/** Names with their values. */
export function Facts({ className = "facts", facts }: FactsProps) {
  return (
    <dl className={className}>
      {facts.map(
        ([name, value], place) =>
          value && (
            <div key={place}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

interface DetailsProps {
  readonly title?: string;
  readonly facts: FactsProps["facts"];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** The last section of an open item: what the others do not show. */
export function Details({ title = "Details", facts, metadata = {} }: DetailsProps) {
  return (
    <section>
      <h3>{title}</h3>
      <Facts facts={facts} />
      {Object.keys(metadata).length > 0 && (
        <details>
          <summary>Metadata</summary>
          <pre tabIndex={0}>{JSON.stringify(metadata, null, 2)}</pre>
        </details>
      )}
    </section>
  );
}
