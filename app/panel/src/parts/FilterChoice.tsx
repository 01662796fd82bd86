import { changeAddress } from "../state/address";

export interface Option {
  readonly value: string;
  readonly label: string;
}

/** The options of a filter by one of these values, the first of which is no filter. */
export function anyOf(name: string, values: readonly string[], shown: (value: string) => string = (value) => value): readonly Option[] {
  return [{ value: "", label: `Any ${name}` }, ...values.map((value) => ({ value, label: shown(value) }))];
}

/** The distinct values among those that are listed, with the chosen one, in alphabetical order. */
export function withChosen(values: readonly (string | null)[], chosen: string): readonly string[] {
  return [...new Set([...values, chosen])].filter((value): value is string => Boolean(value)).sort();
}

interface Props {
  /** The parameter of the address that has the value. */
  readonly name: string;
  readonly label: string;
  readonly chosen: string;
  readonly options: readonly Option[];
}

/** A filter by one of several values. */
export function Choice({ name, label, chosen, options }: Props) {
  return (
    <label>
      <span className="visually-hidden">{label}</span>
      <select value={chosen} onChange={(event) => changeAddress({ [name]: event.target.value })}>
        {options.map(({ value, label: shown }) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}
