import { type ScriptLists as Lists, scriptLines } from "../lib/scriptLines";
import styles from "./ScriptLists.module.css";

/** What became of a script's arguments, and what its text leaves open. */
export function ScriptLists({ read }: { read: Lists }) {
  return (
    <ul className={styles.lines}>
      {scriptLines(read).map(({ title, text }) => (
        <li key={`${title} ${text}`}>
          <span className={styles.title}>{title}</span> {text}
        </li>
      ))}
    </ul>
  );
}
