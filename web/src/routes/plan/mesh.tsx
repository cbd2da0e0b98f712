import { Empty } from "../../components/Empty";

export function Mesh() {
  return <Empty title="This tab is being built" />;
}
