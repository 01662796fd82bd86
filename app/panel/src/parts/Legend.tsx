interface Props {
  readonly label: string;
  /** The class of each colour, and the words for it. */
  readonly entries: readonly { readonly colour: string; readonly label: string }[];
}

/** The colours of a stacked bar. */
export function Legend({ label, entries }: Props) {
  return (
    <ul className="legend" aria-label={label}>
      {entries.map(({ colour, label: shown }) => (
        <li key={colour}>
          <svg className="swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden>
            <rect className={colour} width="10" height="10" rx="2" />
          </svg>
          {shown}
        </li>
      ))}
    </ul>
  );
}
