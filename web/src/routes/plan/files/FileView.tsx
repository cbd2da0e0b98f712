import { Button } from "../../../components/Button";
import { CopyButton } from "../../../components/CopyButton";
import { bytes, count, plural } from "../../../lib/format";
import { saveFile } from "../../../lib/save";
import styles from "./Files.module.css";

interface Props {
  files: Readonly<Record<string, string>>;
  /** Name of the open file; "" or an unknown one = the first. */
  open: string;
  onOpen: (name: string) => void;
}

/** The files by name, and the text of one. */
export function FileView({ files, open, onOpen }: Props) {
  const names = Object.keys(files);
  const name = names.includes(open) ? open : (names[0] ?? "");
  const text = files[name] ?? "";
  const lines = text.trimEnd().split("\n").length;
  const size = new TextEncoder().encode(text).byteLength;
  return (
    <section className={styles.files} aria-label="Files">
      <ul className={styles.names}>
        {names.map((each) => (
          <li key={each}>
            <button
              type="button"
              aria-current={each === name ? "true" : undefined}
              onClick={() => onOpen(each)}
            >
              {each}
            </button>
          </li>
        ))}
      </ul>
      <div className={styles.file}>
        <div className={styles.fileHead}>
          <h2>{name}</h2>
          <span className={styles.size}>
            {plural(lines, "line")}, {bytes(size)}
          </span>
          <span className={styles.fileTools}>
            <CopyButton text={text} label="Copy file" />
            <Button
              onClick={() =>
                saveFile(name.split("/").pop() ?? name, new Blob([text], { type: "text/plain" }))
              }
            >
              Download file
            </Button>
          </span>
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: text that scrolls must be reachable with keys */}
        <section className={styles.text} tabIndex={0} aria-label={`Text of ${name}, ${count(lines)} lines`}>
          <pre aria-hidden="true" className={styles.numbers}>
            {Array.from({ length: lines }, (_, index) => index + 1).join("\n")}
          </pre>
          <pre>{text}</pre>
        </section>
      </div>
    </section>
  );
}
