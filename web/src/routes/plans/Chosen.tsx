import { Link } from "@tanstack/react-router";
import { Button } from "../../components/Button";
import { shortId } from "../../lib/format";
import styles from "./Plans.module.css";

/** What can be done with the plans that are chosen in the list. */
export function Chosen({ plans, onNone }: { plans: readonly string[]; onNone: () => void }) {
  const [a, b] = plans;
  return (
    <p className={styles.chosen} role="status">
      {a === undefined && "Choose two plans to compare them."}
      {a !== undefined && b === undefined && `Plan ${shortId(a)} is chosen; choose one more.`}
      {a !== undefined && b !== undefined && (
        <Link to="/diff/$a/$b" params={{ a, b }}>
          Compare {shortId(a)} with {shortId(b)}
        </Link>
      )}
      {a !== undefined && <Button onClick={onNone}>Choose none</Button>}
    </p>
  );
}
