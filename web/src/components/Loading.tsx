import styles from "./States.module.css";

interface Props {
  /** What is being loaded: read aloud, not shown. */
  label: string;
  /** Height of what will stand here, in px, so that nothing moves when it comes. */
  /** In px, or any length of CSS. */
  height?: number | string;
  lines?: number;
}

const WIDTHS = ["62%", "88%", "74%", "93%", "55%"];

/** Grey bars in the place of what is coming. */
export function Loading({ label, height, lines = 3 }: Props) {
  return (
    <div className={styles.loading} role="status" style={{ minHeight: height }}>
      <span className="visually-hidden">Loading {label}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div
          key={WIDTHS[line % WIDTHS.length] + String(line)}
          className={styles.bar}
          style={{ width: WIDTHS[line % WIDTHS.length] }}
        />
      ))}
    </div>
  );
}
