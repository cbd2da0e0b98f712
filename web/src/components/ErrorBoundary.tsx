import { Component, type ReactNode } from "react";
import { ProblemNotice } from "./ProblemNotice";

interface Props {
  /** A change of this clears the error: the path. */
  resetOn: string;
  children: ReactNode;
}

/** Keeps the shell alive when a screen throws. */
export class ErrorBoundary extends Component<Props, { error: unknown }> {
  override state = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error: error ?? new Error("unknown") };
  }

  override componentDidUpdate(before: Props) {
    if (before.resetOn !== this.props.resetOn && this.state.error !== undefined)
      this.setState({ error: undefined });
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <ProblemNotice error={this.state.error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
