import { Button } from "../../components/Button";
import { bytes, change, NONE, percent, plural, seconds, secondsRange } from "../../lib/format";
import styles from "./Accuracy.module.css";
import { errorOf, isInside, type TimedRun, timeError } from "./runs";

interface Props {
  run: TimedRun | undefined;
  onWalk: (by: number) => void;
  onWorst: () => void;
}

/** One run: what was measured, what was predicted, and where it stands written. */
export function RunPanel({ run, onWalk, onWorst }: Props) {
  return (
    <section className={styles.panel} aria-label="One run">
      <h2>{run ? run.id : "One run"}</h2>
      <p className={styles.buttons}>
        <Button onClick={() => onWalk(-1)}>Shorter (k)</Button>
        <Button onClick={() => onWalk(1)}>Longer (j)</Button>
        <Button onClick={onWorst}>Worst (w)</Button>
      </p>
      {run ? <Figures run={run} /> : <p className={styles.note}>Press a point, or walk with j and k.</p>}
    </section>
  );
}

function Figures({ run }: { run: TimedRun }) {
  const memory = run.measured_peak_memory_bytes;
  const lines: [string, string][] = [
    ["Model", run.model ?? "not stated"],
    [
      "Devices",
      [run.num_devices && plural(run.num_devices, "device"), run.device].filter(Boolean).join(", ") || NONE,
    ],
    ["Measured", seconds(run.measured_step_time_s)],
    ["Predicted", `${seconds(run.predicted_step_time_s)} (${change(timeError(run))})`],
    [
      `Interval of ${percent(run.interval_level, 0)}`,
      `${secondsRange(...run.interval)}: ${isInside(run) ? "holds the measured time" : "does not hold the measured time"}`,
    ],
    ["Predicted memory", bytes(run.predicted_peak_memory_bytes)],
    [
      "Measured memory",
      memory
        ? `${bytes(memory)} (error ${change(errorOf(run.predicted_peak_memory_bytes, memory))})`
        : "not stated",
    ],
    ["Memory means", run.memory_meaning],
    ["Verdict", run.fits_judged ? (run.fits ? "fits" : "would not fit") : "not judged"],
    ["Source", run.source],
  ];
  return (
    <dl className={styles.figures}>
      {lines.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
