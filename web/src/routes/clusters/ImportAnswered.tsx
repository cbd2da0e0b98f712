import { Link } from "@tanstack/react-router";
import type { ImportAnswer } from "../../api/queries/uploads";
import { count, plural, shortId } from "../../lib/format";
import styles from "./Clusters.module.css";
import { OutcomeTable } from "./OutcomeTable";
import { isRefused } from "./outcomes";

interface Props {
  looked: ImportAnswer | undefined;
  stored: ImportAnswer | undefined;
  keepGoing: boolean;
}

/** What was found in the files, and what it changed. */
export function ImportAnswered({ looked, stored, keepGoing }: Props) {
  const answer = stored ?? looked;
  return (
    <div role="status" className={styles.report}>
      {answer && (
        <>
          <p>{stored ? storedSentence(stored) : lookedSentence(answer, keepGoing)}</p>
          <OutcomeTable
            files={answer.files}
            caption={stored ? "What became of the files" : "What is in the files; nothing is stored yet"}
          />
          {stored && <Devices devices={stored.devices} />}
        </>
      )}
    </div>
  );
}

function lookedSentence(answer: ImportAnswer, keepGoing: boolean): string {
  const refused = answer.files.filter(isRefused).length;
  const found = `${plural(answer.num_observations, "row")} can be stored.`;
  if (refused === 0) return found;
  const many = `${count(refused)} of ${count(answer.files.length)} files cannot be used`;
  return keepGoing
    ? `${found} ${many}; the others are stored.`
    : `${many}: leave them out, or store the others.`;
}

function storedSentence(answer: ImportAnswer): string {
  const isNew = answer.files.some((each) => each.status === "stored");
  return isNew
    ? `${plural(answer.num_observations, "row")} are stored; what was there already is not stored twice.`
    : "Everything was stored already; nothing changed.";
}

/** What questions that lean on measurements use from now on. */
function Devices({ devices }: Pick<ImportAnswer, "devices">) {
  const known = devices.filter((each) => each.in_catalogue);
  if (known.length === 0)
    return <p>No device of the catalogue is named, so no plan uses these measurements.</p>;
  return (
    <ul>
      {known.map((each) => (
        <li key={each.device}>
          <Link to="/clusters" search={{ show: "devices", device: each.device }}>
            {each.device}
          </Link>
          :{" "}
          {each.profile_id ? (
            <>
              questions with <code>profile: auto</code> lean on profile{" "}
              <code>{shortId(each.profile_id)}</code>, {plural(each.num_points, "point")}
            </>
          ) : (
            "nothing here predicts a plan's times yet"
          )}
        </li>
      ))}
    </ul>
  );
}
