import type { ReactNode } from "react";
import { useTitleFocus } from "../state/focus";

/** What the pane shows, and where the focus is once it was opened. */
export function PaneTitle({ children }: { readonly children: ReactNode }) {
  return (
    <h2 ref={useTitleFocus()} tabIndex={-1}>
      {children}
    </h2>
  );
}
