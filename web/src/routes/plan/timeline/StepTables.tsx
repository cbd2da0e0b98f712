import { at, type StepColumns } from "../../../charts/step/columns";
import { visibleOf } from "../../../charts/step/detail";
import { criticalTime } from "../../../charts/step/overlay";
import { kindName } from "../../../charts/step/waiting";
import type { TimeWindow } from "../../../charts/step/window";
import { ACTION_KINDS, lookOf } from "../../../charts/terms";
import { DataTable } from "../../../components/DataTable";
import { count, gibibytes, percent, plural, seconds } from "../../../lib/format";
import { exactly } from "./describe";
import styles from "./Timeline.module.css";

const MOST_ROWS = 200;

interface Props {
  step: StepColumns;
  window: TimeWindow;
  rank: number;
}

/** The numbers behind the rows: all ranks, and the actions of one in the window. */
export function StepTables({ step, window, rank }: Props) {
  return (
    <div className={styles.tables}>
      <RankTable step={step} />
      <ActionTable step={step} window={window} rank={rank} />
    </div>
  );
}

function RankTable({ step }: { step: StepColumns }) {
  const critical_s = criticalTime(step);
  const share = (ns: number) => percent(step.makespan_ns > 0 ? ns / step.makespan_ns : 0);
  const of = (column: ArrayLike<number>, rank: number) => at(column, rank + 1) - at(column, rank);
  return (
    <DataTable
      caption="Each rank over the whole step"
      columns={[
        { name: "rank", title: "Rank", cell: (rank) => rank },
        { name: "actions", title: "Actions", number: true, cell: (rank) => count(of(step.offsets, rank)) },
        {
          name: "busy",
          title: "Computes",
          number: true,
          cell: (rank) => seconds(at(step.busy_ns, rank) / 1e9),
        },
        {
          name: "idle",
          title: "Idle",
          number: true,
          cell: (rank) => seconds(at(step.bubble_ns, rank) / 1e9),
        },
        { name: "share", title: "Idle share", number: true, cell: (rank) => share(at(step.bubble_ns, rank)) },
        {
          name: "sends",
          title: "Sends",
          number: true,
          cell: (rank) => count(of(step.transfers.offsets, rank)),
        },
        {
          name: "critical",
          title: "On the critical path",
          number: true,
          cell: (rank) => seconds(critical_s[rank]),
        },
        {
          name: "memory",
          title: "Peak memory",
          number: true,
          cell: (rank) => gibibytes(step.memory[rank]?.peak_bytes),
        },
      ]}
      rows={Array.from({ length: step.num_ranks }, (_, rank) => rank)}
      rowKey={(rank) => rank}
    />
  );
}

function ActionTable({ step, window, rank }: Props) {
  const { first, end } = visibleOf(step, rank, window);
  const shown = Math.min(end - first, MOST_ROWS);
  const rest = end - first - shown;
  const more = rest > 0 ? `; ${plural(rest, "more action")} not listed: zoom in` : "";
  return (
    <DataTable
      caption={`Actions of rank ${rank} from ${exactly(window.from_ns)} to ${exactly(window.to_ns)}${more}`}
      columns={[
        { name: "begins", title: "Begins", cell: (place) => exactly(at(step.start_ns, place)) },
        { name: "ends", title: "Ends", cell: (place) => exactly(at(step.end_ns, place)) },
        {
          name: "action",
          title: "Action",
          cell: (place) => lookOf(ACTION_KINDS, kindName(step, place)).label,
        },
        {
          name: "microbatch",
          title: "Micro-batch",
          number: true,
          cell: (place) => count(at(step.microbatch, place)),
        },
        { name: "chunk", title: "Chunk", number: true, cell: (place) => count(at(step.chunk, place)) },
        {
          name: "critical",
          title: "Critical",
          cell: (place) => (at(step.on_critical, place) ? "yes" : "no"),
        },
      ]}
      rows={Array.from({ length: shown }, (_, index) => first + index)}
      rowKey={(place) => place}
    />
  );
}
