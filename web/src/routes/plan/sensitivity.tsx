import { Empty } from "../../components/Empty";

export function SensitivityTab() {
  return <Empty title="This tab is being built" />;
}
