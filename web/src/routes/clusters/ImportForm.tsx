import { useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { findingsAt } from "../../api/problem";
import { devicesQuery } from "../../api/queries/hardware";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import { ChosenFiles } from "../../components/ChosenFiles";
import { FileButton } from "../../components/FileButton";
import { NameField } from "../../components/NameField";
import { ProblemNotice } from "../../components/ProblemNotice";
import { withFiles } from "../../lib/chosenFiles";
import styles from "./Clusters.module.css";
import { ImportAnswered } from "./ImportAnswered";
import type { ShelfProps } from "./Shelf";
import { useImport } from "./useImport";

/** Logs and traces of the reader's machine: looked at first, then stored. */
export function ImportForm({ search, write }: ShelfProps) {
  const { data: devices = [] } = useQuery(devicesQuery);
  const logs = useImport(search);
  const { files, findings } = logs;
  const say = (part: Parameters<typeof write>[0]) => {
    logs.forget();
    write(part);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (logs.canLook) logs.look();
  };
  return (
    <form
      className={logs.held ? `${styles.import} ${styles.held}` : styles.import}
      onSubmit={submit}
      aria-labelledby="import-heading"
    >
      <h2 id="import-heading">Import logs</h2>
      <p className={styles.soft}>
        Output of benchmarks, profilers and training runs. Choose files or drop them on this page; nothing is
        stored before you say so.
      </p>
      <ChosenFiles files={files} findings={findings} onChange={logs.choose} />
      <div className={styles.fields}>
        <NameField
          label="Device that was measured"
          none="as the files say"
          names={devices.map((each) => each.name)}
          value={search.measured}
          onChange={(measured) => say({ measured })}
        />
        <TextField
          label="Other facts"
          note="What the files do not say"
          placeholder="operation=all_gather group_size=16"
          value={search.facts}
          onChange={(facts) => say({ facts })}
          findings={findingsAt(findings, "/facts")}
        />
        <TextField
          label="Format"
          note="Empty = recognised by the content"
          placeholder="nccl-tests"
          value={search.format}
          onChange={(format) => say({ format })}
          findings={findingsAt(findings, "/format")}
        />
      </div>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={search.keepGoing}
          onChange={(event) => say({ keepGoing: event.target.checked })}
        />
        Store good files and good rows although others are refused
      </label>
      {logs.error && <ProblemNotice error={logs.error} shownElsewhere={logs.placed} />}
      <div className={styles.buttons}>
        <FileButton label="Choose files" several onFiles={(added) => logs.choose(withFiles(files, added))} />
        <Button type="submit" look={logs.looked ? "plain" : "primary"} disabled={!logs.canLook}>
          {logs.isLooking ? "Reading\u2026" : "Look first"}
        </Button>
        <Button look={logs.looked ? "primary" : "plain"} disabled={!logs.canStore} onClick={logs.store}>
          {logs.isStoring ? "Storing\u2026" : "Store"}
        </Button>
        <Button onClick={() => write({ logs: false })}>Close</Button>
      </div>
      <ImportAnswered looked={logs.looked} stored={logs.stored} keepGoing={search.keepGoing} />
    </form>
  );
}
