import type { ReactNode } from "react";
import styles from "./States.module.css";

interface Props {
  title: string;
  /** Why it is empty, and what to do. */
  children?: ReactNode;
}

/** There is nothing here yet, and this is how something comes. */
export function Empty({ title, children }: Props) {
  return (
    <section className={styles.state}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
