import type { SensitivityPoint } from "../../../api/queries/sensitivity";
import { Mark } from "../../../charts/tornado/Tornado";
import { DataTable } from "../../../components/DataTable";
import { change, percent, seconds } from "../../../lib/format";
import { verdictOf, verdictWords } from "./points";
import styles from "./Sensitivity.module.css";

interface Props {
  caption: string;
  points: readonly SensitivityPoint[];
  captionHidden?: boolean;
}

/** Every change with what it does and what becomes of the plan. */
export function LeverTable({ caption, points, captionHidden }: Props) {
  return (
    <DataTable
      caption={caption}
      captionHidden={captionHidden}
      columns={[
        { name: "lever", title: "Input", cell: (row) => row.lever.replaceAll("_", " ") },
        { name: "change", title: "Is off by", number: true, cell: (row) => change(row.change) },
        {
          name: "effect",
          title: "Time a token",
          number: true,
          cell: (row) => change(row.time_per_token_change, 2),
        },
        { name: "step", title: "Step time", number: true, cell: (row) => seconds(row.step_time_s) },
        { name: "verdict", title: "The plan", cell: (row) => <VerdictCell point={row} /> },
        {
          name: "best",
          title: "Best step time then",
          number: true,
          cell: (row) => seconds(row.best_step_time_s),
        },
        { name: "regret", title: "Lost by keeping it", number: true, cell: (row) => percent(row.regret, 2) },
        {
          name: "differs",
          title: "What differs then",
          cell: (row) => row.reason || (row.best_strategy_changes ?? []).join(", "),
        },
      ]}
      rows={points}
      rowKey={(row) => `${row.lever} ${row.change}`}
    />
  );
}

function VerdictCell({ point }: { point: SensitivityPoint }) {
  return (
    <span className={styles.verdict}>
      <svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
        <Mark verdict={verdictOf(point)} />
      </svg>
      {verdictWords(point)}
    </span>
  );
}
