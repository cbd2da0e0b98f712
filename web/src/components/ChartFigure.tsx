import { type ReactNode, Suspense, useRef, useState } from "react";
import { saveFile } from "../lib/save";
import { Button } from "./Button";
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

/** A chart with the sentence that says what it shows, the table behind it, and itself as a file. */
export function ChartFigure({ title, sentence, children, table }: Props) {
  const [shown, setShown] = useState(false);
  const figure = useRef<HTMLElement>(null);
  return (
    <figure ref={figure} className={styles.figure}>
      <figcaption>
        <h2>{title}</h2>
        <p className={styles.sentence}>{sentence}</p>
      </figcaption>
      {children}
      <details className={styles.data} open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary>Show data</summary>
        {shown && (
          <div className={styles.files}>
            <Button onClick={() => void save(figure.current, title, "svg")}>Save as SVG</Button>
            <Button onClick={() => void save(figure.current, title, "png")}>Save as PNG</Button>
          </div>
        )}
        {shown && <Suspense fallback={<p>Loading…</p>}>{table()}</Suspense>}
      </details>
    </figure>
  );
}

/** A drawing on a canvas has no lines to write: it is saved as PNG whatever is asked. */
async function save(figure: HTMLElement | null, title: string, format: "svg" | "png"): Promise<void> {
  const { marksOf, pngFile, svgFile } = await import("../lib/picture");
  const marks = figure ? marksOf(figure) : undefined;
  if (!marks) return;
  const name = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  if (format === "svg" && marks instanceof SVGSVGElement)
    return saveFile(`${name}.svg`, await svgFile(marks, title));
  saveFile(`${name}.png`, await pngFile(marks, title));
}
