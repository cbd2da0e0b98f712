import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { fleetQuery, shareFleet } from "../api/queries/fleets";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { useFileDrop } from "../lib/fileDrop";
import { Answer } from "./fleet/Answer";
import { AskAgain } from "./fleet/AskAgain";
import styles from "./fleet/Fleet.module.css";
import { FleetFile } from "./fleet/FleetFile";
import { again, keepFile, keptFile } from "./fleet/file";
import { readFleetSearch } from "./fleet.search";

/** Many jobs, one fleet: who gets how many and which nodes. */
export function FleetScreen() {
  const { answer } = readFleetSearch.full(useSearch({ from: "/fleet" }));
  const navigate = useNavigate();
  const [file, setFile] = useState(keptFile);
  const [open, setOpen] = useState(answer === "");
  const write = (next: string) => {
    setFile(next);
    keepFile(next);
  };
  const sharing = useMutation({
    mutationFn: shareFleet,
    onSuccess: (found) => {
      if ("job" in found)
        return navigate({ to: "/jobs/$jobId", params: { jobId: found.job }, search: { follow: true } });
      setOpen(false);
      return navigate({ to: "/fleet", search: { answer: found.fleet }, resetScroll: false });
    },
    // What is wrong is repaired in the file.
    onError: () => setOpen(true),
  });
  const share = (next: string) => {
    write(next);
    sharing.mutate(next);
  };
  const take = async ([first]: readonly File[]) => {
    if (first) write(await first.text());
    setOpen(true);
  };
  const held = useFileDrop((files) => void take(files));
  const shown = useQuery({ ...fleetQuery(answer), enabled: answer !== "" });
  return (
    <>
      <PageHead title="Share a fleet" />
      <div className={styles.screen} data-held={held}>
        <FleetFile
          file={file}
          open={open}
          onOpen={setOpen}
          onChange={write}
          onFiles={(files) => void take(files)}
          onShare={() => share(file)}
          isPending={sharing.isPending}
        />
        {sharing.error && <ProblemNotice error={sharing.error} />}
        {answer === "" ? (
          <Empty title="Who gets which nodes?">
            <p>
              A fleet file names pools of nodes and the jobs that want them. Write one above, drop it here, or
              take the example.
            </p>
          </Empty>
        ) : shown.error ? (
          <ProblemNotice error={shown.error} onRetry={() => void shown.refetch()} />
        ) : shown.data ? (
          <>
            <Answer fleet={shown.data} />
            <AskAgain
              disabled={file.trim() === "" || sharing.isPending}
              onAsk={(lost, fewest) => share(again(file, { former: answer, lost, fewest }))}
            />
          </>
        ) : (
          <Loading label="answer" height={480} lines={8} />
        )}
      </div>
    </>
  );
}
