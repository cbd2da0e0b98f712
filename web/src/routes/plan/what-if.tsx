import { Empty } from "../../components/Empty";

export function WhatIf() {
  return <Empty title="This tab is being built" />;
}
