import { percent } from "../lib/format";
import styles from "./Provenance.module.css";

/** From most to least trusted.  A full, a half and an empty mark: never colour alone. */
const KINDS = ["measured", "interpolated", "transferred", "datasheet"] as const;
type Kind = (typeof KINDS)[number];

const MEANING: Record<Kind, string> = {
  measured: "times measured on this hardware",
  interpolated: "times between measured points",
  transferred: "times measured elsewhere and carried over",
  datasheet: "times from the vendor's figures, none measured",
};
const LOOK: Record<Kind, string | undefined> = {
  measured: styles.measured,
  interpolated: styles.interpolated,
  transferred: styles.interpolated,
  datasheet: styles.datasheet,
};

/** Shares of the step time by where its inputs come from, most trusted first. */
export function provenanceShares(provenance: unknown): readonly (readonly [string, number])[] {
  const shares = (provenance as { time_by_input?: Record<string, number> } | undefined)?.time_by_input ?? {};
  const order: readonly string[] = KINDS;
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(shares)
    .filter(([, share]) => share > 0)
    .sort(([a], [b]) => rank(a) - rank(b));
}

/** How far a plan's times are measured: `measured 82 % · datasheet 18 %`. */
export function Provenance({ provenance }: { provenance: unknown }) {
  const shares = provenanceShares(provenance);
  const leading = shares.reduce<readonly [string, number] | undefined>(
    (best, each) => (best === undefined || each[1] > best[1] ? each : best),
    undefined,
  );
  if (!leading) return null;
  const text =
    shares.length === 1
      ? leading[0]
      : shares.map(([name, share]) => `${name} ${percent(share, 0)}`).join(" \u00b7 ");
  const meaning = shares.map(([name]) => MEANING[name as Kind] ?? name).join("; ");
  return (
    <span className={`${styles.badge} ${LOOK[leading[0] as Kind] ?? ""}`} title={meaning}>
      <span className={styles.mark} aria-hidden="true" />
      <span className="visually-hidden">Step time is </span>
      {text}
    </span>
  );
}
