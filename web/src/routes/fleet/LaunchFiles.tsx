import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { backendsQuery } from "../../api/queries/catalogue";
import { downloadLaunch, type JobAllocation } from "../../api/queries/fleets";
import { Button } from "../../components/Button";
import { ChoiceField } from "../../components/ChoiceField";
import { ProblemNotice } from "../../components/ProblemNotice";
import { saveFile } from "../../lib/save";
import styles from "./Fleet.module.css";

const USUAL = "torchrun";

/** The launch folder of each job, with its own nodes as hosts. */
export function LaunchFiles({ jobs }: { jobs: readonly JobAllocation[] }) {
  const { data: known = [] } = useQuery(backendsQuery);
  const [launcher, setLauncher] = useState(USUAL);
  const used = known.filter((each) => jobs.some((job) => job.backend === each.name));
  const all = [...new Set([USUAL, ...used.flatMap((each) => each.launchers)])];
  const saving = useMutation({
    mutationFn: (job: JobAllocation) => downloadLaunch(job, launcher),
    onSuccess: ({ content }, job) => saveFile(`${job.name}.zip`, content),
  });
  return (
    <section>
      <h2>Launch files</h2>
      <div className={styles.launch}>
        <ChoiceField label="Launcher" value={launcher} choices={all} onChange={setLauncher} />
        <ul className={styles.actions}>
          {jobs.map((job) => (
            <li key={job.name}>
              <Button disabled={saving.isPending} onClick={() => saving.mutate(job)}>
                Download {job.name}
              </Button>
            </li>
          ))}
        </ul>
      </div>
      {saving.error && <ProblemNotice error={saving.error} />}
    </section>
  );
}
