import type { Emission, Manifest } from "../../../api/queries/emissions";
import styles from "./Files.module.css";

/** What the files take for granted. */
export function EmissionNotes({ emission }: { emission: Emission }) {
  const manifest = emission.manifest as unknown as Manifest;
  const environment = Object.entries(manifest.environment);
  return (
    <div className={styles.notes}>
      <section>
        <h2>Assumptions</h2>
        <ul className={styles.assumptions}>
          {manifest.assumptions.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      </section>
      {environment.length > 0 && (
        <section>
          <h2>Environment</h2>
          <ul className={styles.assumptions}>
            {environment.map(([name, value]) => (
              <li key={name}>
                <code>
                  {name}={value}
                </code>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
