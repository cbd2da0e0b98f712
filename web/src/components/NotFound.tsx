import { Link } from "@tanstack/react-router";
import { Empty } from "./Empty";

/** No screen has this address. */
export function NotFound() {
  return (
    <Empty title="There is no such page">
      <p>
        The address may be cut off. See the <Link to="/plans">stored plans</Link> or{" "}
        <Link to="/">make a new one</Link>.
      </p>
    </Empty>
  );
}
