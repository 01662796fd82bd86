import { type ReactNode, useId } from "react";

interface Props {
  readonly label: string;
  readonly className?: string;
  /** Returns the control that has this id. */
  readonly children: (id: string) => ReactNode;
}

/** A control below its label. */
export function Field({ label, className = "", children }: Props) {
  const id = useId();
  return (
    <div className={`field ${className}`}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}
