import { type ReactNode, Suspense, useState } from "react";
import styles from "./ChartFigure.module.css";

interface Props {
  title: string;
  /** What the chart says, for those who see it and those who do not. */
  sentence: string;
  /** The marks: an <svg role="img"> or a <canvas role="img">, labelled by the sentence. */
  children: ReactNode;
  /** The same numbers as a DataTable; made, and its code asked for, only when it is opened. */
  table: () => ReactNode;
}

/** A chart with the sentence that says what it shows and the table behind it. */
export function ChartFigure({ title, sentence, children, table }: Props) {
  const [shown, setShown] = useState(false);
  return (
    <figure className={styles.figure}>
      <figcaption>
        <h2>{title}</h2>
        <p className={styles.sentence}>{sentence}</p>
      </figcaption>
      {children}
      <details className={styles.data} open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary>Show data</summary>
        {shown && <Suspense fallback={<p>Loading…</p>}>{table()}</Suspense>}
      </details>
    </figure>
  );
}
