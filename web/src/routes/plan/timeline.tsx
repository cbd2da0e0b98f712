import { Empty } from "../../components/Empty";

export function Timeline() {
  return <Empty title="This tab is being built" />;
}
