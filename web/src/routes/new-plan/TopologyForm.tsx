import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { ApiProblem, findingsAt } from "../../api/problem";
import { clustersQuery } from "../../api/queries/catalogue";
import { devicesQuery } from "../../api/queries/hardware";
import { type ClusterCompletion, type CompletionWish, completeCluster } from "../../api/queries/uploads";
import { Button } from "../../components/Button";
import { TextField } from "../../components/ChoiceField";
import { ChosenFiles } from "../../components/ChosenFiles";
import { FileButton } from "../../components/FileButton";
import { NameField } from "../../components/NameField";
import { ProblemNotice } from "../../components/ProblemNotice";
import { tooLarge, withFiles } from "../../lib/chosenFiles";
import styles from "./NewPlan.module.css";

interface Props {
  files: readonly File[];
  onFiles: (files: readonly File[]) => void;
  /** The cluster of the question: what the files do not say comes from it, unless the reader says otherwise. */
  base: string;
  onLeave: () => void;
  onCompleted: (answer: ClusterCompletion) => void;
}

/** Topology files that wait to become the cluster of the question. */
export function TopologyForm({ files, onFiles, base, onLeave, onCompleted }: Props) {
  const [wish, setWish] = useState<CompletionWish>({ base, device: "", format: "" });
  const { data: clusters = [] } = useQuery(clustersQuery);
  const { data: devices = [] } = useQuery(devicesQuery);
  const heading = useFocusOnce();
  const completing = useMutation({
    mutationFn: () => completeCluster(files, wish),
  });
  const findings = completing.error instanceof ApiProblem ? (completing.error.problem.errors ?? []) : [];
  const placed = findingsAt(findings, "/base", "/device", "/format", "/files");
  const isPlaced = findings.length > 0 && placed.length === findings.length;
  // What was refused was another question.
  const write = (part: Partial<CompletionWish>) => {
    completing.reset();
    setWish((before) => ({ ...before, ...part }));
  };
  const change = (chosen: readonly File[]) => {
    completing.reset();
    onFiles(chosen);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Given here and not above: an answer to what was changed meanwhile is not taken.
    completing.mutate(undefined, { onSuccess: onCompleted });
  };
  return (
    <form className={styles.topology} onSubmit={submit} aria-labelledby="topology-heading">
      <h2 id="topology-heading" ref={heading} tabIndex={-1}>
        A cluster from files
      </h2>
      <p>What the files show wins; all else comes from the base. Nothing is stored.</p>
      <ChosenFiles files={files} findings={findings} onChange={change} />
      <div className={styles.three}>
        <NameField
          label="Base"
          none="none"
          note="Gives the numbers that no file gives"
          names={clusters.map((each) => each.name)}
          value={wish.base}
          onChange={(chosen) => write({ base: chosen })}
          findings={findingsAt(findings, "/base")}
        />
        <NameField
          label="Device"
          none="as the files or the base say"
          names={devices.map((each) => each.name)}
          value={wish.device}
          onChange={(device) => write({ device })}
          findings={findingsAt(findings, "/device")}
        />
        <TextField
          label="Format"
          note="Empty = recognised by the content"
          placeholder="slurm-topology-conf"
          value={wish.format}
          onChange={(format) => write({ format })}
          findings={findingsAt(findings, "/format")}
        />
      </div>
      {completing.error && !isPlaced && <ProblemNotice error={completing.error} shownElsewhere={placed} />}
      <div className={styles.files}>
        <Button
          type="submit"
          look="primary"
          disabled={completing.isPending || files.length === 0 || tooLarge(files).length > 0}
        >
          {completing.isPending ? "Reading\u2026" : "Complete the cluster"}
        </Button>
        <FileButton label="Add files" several onFiles={(added) => change(withFiles(files, added))} />
        <Button onClick={onLeave}>Leave it</Button>
      </div>
    </form>
  );
}

/** Something that came because of a drop anywhere: readers of the page are taken to it. */
function useFocusOnce() {
  const place = useRef<HTMLHeadingElement>(null);
  useEffect(() => place.current?.focus(), []);
  return place;
}
