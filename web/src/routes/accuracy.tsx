import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { reportQuery, reportsQuery } from "../api/queries/accuracy";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { gibibytes, seconds, secondsOnly } from "../lib/format";
import { useKeys } from "../lib/keys";
import styles from "./accuracy/Accuracy.module.css";
import { AgreementFigure } from "./accuracy/AgreementFigure";
import { Filters } from "./accuracy/Filters";
import { GroupTable } from "./accuracy/GroupTable";
import { OwnReport } from "./accuracy/OwnReport";
import { RunPanel } from "./accuracy/RunPanel";
import { chosenRuns, isTimed, pairsOf, type Report, type Run, timeError } from "./accuracy/runs";
import { memorySentence, timeSentence, verdictSentence } from "./accuracy/sentences";
import { type AccuracyState, readAccuracySearch } from "./accuracy.search";

/** How far were predictions from measured runs? */
export function Accuracy() {
  const wanted = readAccuracySearch.full(useSearch({ from: "/accuracy" }));
  const navigate = useNavigate();
  const listed = useQuery(reportsQuery);
  const report = useQuery(reportQuery(wanted.report));
  const change = (part: Partial<AccuracyState>, replace = false) =>
    void navigate({
      to: "/accuracy",
      search: readAccuracySearch({ ...wanted, ...part }),
      replace,
      resetScroll: false,
    });
  return (
    <>
      <PageHead title="Accuracy" />
      <div className={styles.screen}>
        <Filters
          reports={listed.data ?? []}
          report={report.data?.document}
          wanted={wanted}
          onChange={change}
        />
        {listed.error && <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />}
        {report.error && <ProblemNotice error={report.error} onRetry={() => void report.refetch()} />}
        {report.isPending && <Loading label="the report" height={560} lines={8} />}
        {report.data && <Runs report={report.data.document} wanted={wanted} change={change} />}
        {listed.data && <OwnReport none={listed.data.every((each) => each.builtin)} />}
      </div>
    </>
  );
}

interface Props {
  report: Report;
  wanted: AccuracyState;
  change: (part: Partial<AccuracyState>, replace?: boolean) => void;
}

const hasMemory = (run: Run): run is Run & { measured_peak_memory_bytes: number } =>
  Boolean(run.measured_peak_memory_bytes) && run.predicted_peak_memory_bytes > 0;

function Runs({ report, wanted, change }: Props) {
  const { source, device, model, fitted, run: selected } = wanted;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the runs hang on these parts of the address only
  const chosen = useMemo(() => chosenRuns(report, wanted), [report, source, device, model, fitted]);
  const timed = useMemo(
    () => chosen.filter(isTimed).sort((a, b) => a.measured_step_time_s - b.measured_step_time_s),
    [chosen],
  );
  const measured = useMemo(() => chosen.filter(hasMemory), [chosen]);
  const times = useMemo(
    () => pairsOf(report, timed, (run) => [run.measured_step_time_s, run.predicted_step_time_s]),
    [timed, report],
  );
  const peaks = useMemo(
    () =>
      pairsOf(report, measured, (run) => [run.measured_peak_memory_bytes, run.predicted_peak_memory_bytes]),
    [measured, report],
  );
  const walk = (by: number) => {
    const place = timed.findIndex((each) => each.id === selected);
    const next = timed[place < 0 ? 0 : Math.min(timed.length - 1, Math.max(0, place + by))];
    if (next) change({ run: next.id }, true);
  };
  const worst = () => {
    const found = timed.toSorted((a, b) => Math.abs(timeError(b)) - Math.abs(timeError(a)))[0];
    if (found) change({ run: found.id });
  };
  useKeys([
    { keys: "j", does: "Next longer run", group: "Accuracy", run: () => walk(1) },
    { keys: "k", does: "Next shorter run", group: "Accuracy", run: () => walk(-1) },
    { keys: "w", does: "Run with the largest error", group: "Accuracy", run: worst },
    { keys: "Escape", does: "No run", group: "Accuracy", run: () => change({ run: "" }, true) },
  ]);
  if (chosen.length === 0) return <Empty title="No run fits these filters" />;
  const select = (id: string) => change({ run: id });
  return (
    <>
      <div className={styles.pair}>
        {times.length > 0 ? (
          <AgreementFigure
            title="Step time: predicted and measured"
            sentence={timeSentence(timed, report.interval_level)}
            quantity="step time"
            pairs={times}
            format={seconds}
            tickLabel={secondsOnly}
            selected={selected}
            onSelect={select}
          />
        ) : (
          <Empty title="No step time was measured in these runs" />
        )}
        <RunPanel run={timed.find((each) => each.id === selected)} onWalk={walk} onWorst={worst} />
      </div>
      <p>{verdictSentence(chosen)}</p>
      {timed.length > 0 && <GroupTable report={report} runs={timed} wanted={wanted} onChange={change} />}
      {peaks.length > 0 && (
        <AgreementFigure
          title="Peak memory: predicted and measured"
          sentence={memorySentence(measured)}
          quantity="peak memory"
          pairs={peaks}
          format={gibibytes}
          tickLabel={gibibytes}
          unit={2 ** 30}
          selected={selected}
          onSelect={select}
        />
      )}
    </>
  );
}
