import { type Finding, findingsAt } from "../api/problem";
import { tooLarge } from "../lib/chosenFiles";
import { bytes } from "../lib/format";
import { Button } from "./Button";
import styles from "./ChosenFiles.module.css";
import { FindingList } from "./Field";

interface Props {
  files: readonly File[];
  /** What the API says about the request that carries them, with pointers like /files/1. */
  findings: readonly Finding[];
  onChange: (files: readonly File[]) => void;
}

/** Files that are to be sent, and beside each what is wrong with it. */
export function ChosenFiles({ files, findings, onChange }: Props) {
  const ofAll = [...tooLarge(files), ...findings.filter((each) => each.pointer === "/files")];
  return (
    <>
      <ul className={styles.files}>
        {files.map((file, index) => (
          <li key={`${file.name} ${file.size} ${file.lastModified}`}>
            <div className={styles.file}>
              <span className={styles.name}>{file.name}</span>
              <span className={styles.size}>{bytes(file.size, 2)}</span>
              <Button
                look="quiet"
                aria-label={`Leave out ${file.name}`}
                onClick={() => onChange(files.filter((each) => each !== file))}
              >
                Leave out
              </Button>
            </div>
            <FindingList findings={findingsAt(findings, `/files/${index}`)} />
          </li>
        ))}
      </ul>
      <FindingList findings={ofAll} />
    </>
  );
}
