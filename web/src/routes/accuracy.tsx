import { Empty } from "../components/Empty";
import { PageHead } from "../components/PageHead";

export function Accuracy() {
  return (
    <>
      <PageHead title="Accuracy" />
      <Empty title="This screen is being built" />
    </>
  );
}
