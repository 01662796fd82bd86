import type { ReactNode } from "react";
import { useTitleFocus } from "../state/focus";

/** The title of a pane; it gets the focus when the pane is opened. */
export function PaneTitle({ children }: { readonly children: ReactNode }) {
  return (
    <h2 ref={useTitleFocus()} tabIndex={-1}>
      {children}
    </h2>
  );
}
