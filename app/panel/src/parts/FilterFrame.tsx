import type { ReactNode } from "react";
import { changeAddress } from "../state/address";
import { Icon } from "./Icon";
import { SearchField } from "./SearchField";

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the list is asked. */

/** The filters of a list. The address has the text as `q`, and each of the others under its own name. */
export type Narrowing<F> = Readonly<Record<keyof F, string>> & { readonly text: string };

export function isNarrowed<F extends Narrowing<F>>(filters: F): boolean {
  return Object.values<string>(filters).some((value) => value !== "");
}

interface Props<F> {
  readonly filters: F;
  readonly label: string;
  readonly placeholder: string;
  /** The names of filters that are set elsewhere, and are shown as chips. */
  readonly chips?: Partial<Record<keyof F, string>>;
  readonly children: ReactNode;
}

/** The search of a list and its other filters, with a button that clears them all. */
export function FilterFrame<F extends Narrowing<F>>({ filters, label, placeholder, chips = {}, children }: Props<F>) {
  const { text, ...others } = filters;
  const cleared = Object.fromEntries(["q", ...Object.keys(others)].map((name) => [name, null]));
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={text} label={label} placeholder={placeholder} pause={PAUSE_MILLISECONDS} />
      {children}
      {Object.entries<string>(others).map(([name, value]) => {
        const shown = chips[name as keyof F];
        return shown && value && <Chip key={name} name={name} label={`${shown}: ${value}`} />;
      })}
      {isNarrowed(filters) && (
        <button type="button" className="quiet" onClick={() => changeAddress(cleared)}>
          Clear filters
        </button>
      )}
    </div>
  );
}

function Chip({ name, label }: { readonly name: string; readonly label: string }) {
  return (
    <button type="button" className="chip" onClick={() => changeAddress({ [name]: null })}>
      {label}
      <Icon name="close" label="Remove" />
    </button>
  );
}
