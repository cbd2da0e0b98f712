import { Empty } from "../../components/Empty";

export function Memory() {
  return <Empty title="This tab is being built" />;
}
