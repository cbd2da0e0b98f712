import type { Emission, Manifest } from "../../../api/queries/emissions";
import { DataTable } from "../../../components/DataTable";
import styles from "./Files.module.css";

/** Where the target runs something else than the plan, and what the files take for granted. */
export function EmissionNotes({ emission }: { emission: Emission }) {
  const manifest = emission.manifest as unknown as Manifest;
  const environment = Object.entries(manifest.environment);
  return (
    <div className={styles.notes}>
      {manifest.projections.length > 0 && (
        <section>
          <h2>What {manifest.target} runs differently</h2>
          <DataTable
            caption={`Settings of the plan that ${manifest.target} cannot keep`}
            columns={[
              { name: "field", title: "Setting", cell: (row) => row.field },
              { name: "wanted", title: "Plan", cell: (row) => row.wanted },
              { name: "emitted", title: "Files", cell: (row) => row.emitted },
              { name: "reason", title: "Why", wraps: true, cell: (row) => row.reason },
              { name: "kept", title: "Kept by", wraps: true, cell: (row) => row.kept_by?.join(", ") },
            ]}
            rows={manifest.projections}
            rowKey={(row) => row.field}
          />
        </section>
      )}
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
