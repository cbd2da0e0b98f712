import type { Emission, Manifest } from "../../../api/queries/emissions";
import { CopyButton } from "../../../components/CopyButton";
import { seconds } from "../../../lib/format";
import styles from "./Files.module.css";

/** How it is started on every node, and how fast its plan is. */
export function LaunchCommand({ emission }: { emission: Emission }) {
  const manifest = emission.manifest as unknown as Manifest;
  const versions = Object.entries(manifest.versions).filter(([name]) => name !== "meshwright");
  return (
    <section className={styles.launch}>
      <h2>Launch command</h2>
      <div className={styles.command}>
        <code>{manifest.launch_command}</code>
        <CopyButton text={manifest.launch_command} label="Copy command" />
      </div>
      <p>
        {versions.map(([name, version]) => `${name} ${version}`).join(", ")}: {seconds(emission.step_time_s)}{" "}
        a step.
      </p>
      {emission.launch_notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </section>
  );
}
