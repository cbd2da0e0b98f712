import { Empty } from "../../components/Empty";

export function Files() {
  return <Empty title="This tab is being built" />;
}
