import type { ReactNode } from "react";
import styles from "./PageHead.module.css";

/** The name of a screen, and what can be done with all of it. */
export function PageHead({ title, children }: { title: ReactNode; children?: ReactNode }) {
  return (
    <div className={styles.head}>
      <h1>{title}</h1>
      {children}
    </div>
  );
}
