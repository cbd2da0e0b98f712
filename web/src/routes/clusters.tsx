import { Empty } from "../components/Empty";
import { PageHead } from "../components/PageHead";

export function Clusters() {
  return (
    <>
      <PageHead title="Clusters & profiles" />
      <Empty title="This screen is being built" />
    </>
  );
}
