/** The controls of forms, each below its label. */

import { type ComponentProps, type ReactNode, useId } from "react";

const TEXT_LIMIT = 2_000;
/** Characters, unless the control says otherwise. */

interface Props {
  readonly label: string;
  /** Returns the control that has this id. */
  readonly children: (id: string) => ReactNode;
}

/** A control below its label. */
export function Field({ label, children }: Props) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}

interface Valued<T> {
  readonly value: T;
  readonly set: (value: T) => void;
}

interface Labelled {
  readonly label: string;
}

type Rest<Control extends "input" | "textarea" | "select"> = Omit<ComponentProps<Control>, "value" | "onChange" | "children">;

/** One line, or the day of `type="date"`. */
export function TextField({ label, set, ...rest }: Labelled & Valued<string> & Rest<"input">) {
  return (
    <Field label={label}>
      {(id) => <input id={id} dir="auto" maxLength={TEXT_LIMIT} onChange={(event) => set(event.target.value)} {...rest} />}
    </Field>
  );
}

export function AreaField({ label, set, ...rest }: Labelled & Valued<string> & Rest<"textarea">) {
  return (
    <Field label={label}>
      {(id) => <textarea id={id} dir="auto" rows={2} maxLength={TEXT_LIMIT} onChange={(event) => set(event.target.value)} {...rest} />}
    </Field>
  );
}

interface Options extends Valued<string>, Rest<"select"> {
  /** Each value with its name. */
  readonly options: readonly (readonly [value: string, name: string])[];
}

export function Choice({ options, set, ...rest }: Options) {
  return (
    <select onChange={(event) => set(event.target.value)} {...rest}>
      {options.map(([value, name]) => (
        <option key={value} value={value}>
          {name}
        </option>
      ))}
    </select>
  );
}

export function ChoiceField({ label, ...rest }: Labelled & Options) {
  return <Field label={label}>{(id) => <Choice id={id} {...rest} />}</Field>;
}
