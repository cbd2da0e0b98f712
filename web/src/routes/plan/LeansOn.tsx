import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type LeaningView, leaningQuery } from "../../api/queries/hardware";
import { CopyLine } from "../../components/CopyLine";
import { DataTable } from "../../components/DataTable";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { percent } from "../../lib/format";
import { leaningSentence, shapeWords } from "./leaning";
import styles from "./Plan.module.css";

const MOST_SHOWN = 6;

/** Which unmeasured numbers the plan leans on, what would be worth measuring, and the commands that do it. */
export function LeansOn({ planId }: { planId: string }) {
  const leaning = useQuery(leaningQuery(planId));
  return (
    <section className={styles.leansOn}>
      <h2>What it leans on</h2>
      {leaning.isPending && <Loading label="inputs" height={160} />}
      {leaning.error && <ProblemNotice error={leaning.error} onRetry={() => void leaning.refetch()} />}
      {leaning.data && <Answer leaning={leaning.data} />}
    </section>
  );
}

function Answer({ leaning }: { leaning: LeaningView }) {
  const gains = leaning.measure_next.filter((each) => each.sigma_gain > 0).slice(0, MOST_SHOWN);
  return (
    <>
      <p>{leaningSentence(leaning)}</p>
      {gains.length > 0 && (
        <DataTable
          caption="Measure next: what would make the step time surest"
          columns={[
            { name: "what", title: "Lookup", cell: (row) => `${row.operator} ${row.part}`.trim() },
            { name: "input", title: "Now from", cell: (row) => row.input },
            { name: "share", title: "Of the step", number: true, cell: (row) => percent(row.share_of_step) },
            { name: "sigma", title: "Its spread", number: true, cell: (row) => percent(row.sigma, 0) },
            { name: "shape", title: "Shape", cell: (row) => shapeWords(row.shape) },
          ]}
          rows={gains}
          rowKey={(row) => `${row.operator} ${row.part} ${shapeWords(row.shape)} ${row.term}`}
        />
      )}
      {leaning.commands.map((command) => (
        <CopyLine key={command} text={command} />
      ))}
      <p>
        <Link to="/clusters" search={{ show: "devices", device: leaning.device }}>
          What is measured of {leaning.device}
        </Link>
      </p>
    </>
  );
}
