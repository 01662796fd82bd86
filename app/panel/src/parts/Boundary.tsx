import { Component, type ReactNode } from "react";
import { Failure } from "./states";

interface Props {
  readonly children: ReactNode;
}

interface State {
  readonly error: Error | null;
}

/** Keeps what went wrong in a view within it. A failed import stays failed for the page, so trying again loads it anew. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <Failure what="The view" error={error} retry={() => window.location.reload()} />;
  }
}
