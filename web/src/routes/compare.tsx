import { Empty } from "../components/Empty";
import { PageHead } from "../components/PageHead";

export function Compare() {
  return (
    <>
      <PageHead title="Compare clusters" />
      <Empty title="This screen is being built" />
    </>
  );
}
