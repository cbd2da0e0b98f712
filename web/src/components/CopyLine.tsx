import { CopyButton } from "./CopyButton";
import styles from "./CopyLine.module.css";

/** A command to run elsewhere, with the button that copies it. */
export function CopyLine({ text }: { text: string }) {
  return (
    <div className={styles.line}>
      <code>{text}</code>
      <CopyButton text={text} label="Copy" />
    </div>
  );
}
