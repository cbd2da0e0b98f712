import { Empty } from "../../components/Empty";

export function Alternatives() {
  return <Empty title="This tab is being built" />;
}
