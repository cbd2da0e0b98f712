import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { memoryQuery } from "../../api/queries/plans";
import { ChartFigure } from "../../components/ChartFigure";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { useKeys } from "../../lib/keys";
import styles from "./memory/Memory.module.css";
import { MemoryBars } from "./memory/MemoryBars";
import { MemoryTable } from "./memory/MemoryTable";
import { OrderChoice } from "./memory/OrderChoice";
import { StageBill } from "./memory/StageBill";
import { type MemoryView, memorySentence, orderedStages, type StageOrder } from "./memory/stages";
import { readMemorySearch } from "./memory.search";

/** What fills the memory of every stage, and the bill of one. */
export function Memory() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const memory = useQuery(memoryQuery(planId));
  if (memory.error) return <ProblemNotice error={memory.error} onRetry={() => void memory.refetch()} />;
  if (!memory.data) return <Loading label="memory" height={360} lines={6} />;
  if (memory.data.stages.length === 0) return <Empty title="The plan has no stages" />;
  return <Stages planId={planId} view={memory.data} />;
}

function Stages({ planId, view }: { planId: string; view: MemoryView }) {
  const wanted = readMemorySearch.full(useSearch({ from: "/plans/$planId/memory" }));
  const navigate = useNavigate({ from: "/plans/$planId/memory" });
  const stages = orderedStages(view, wanted.order);
  const shown =
    stages.find((each) => each.stage === wanted.stage) ??
    stages.find((each) => each.stage === view.worst_stage);
  const select = (stage: number, walked = false) =>
    void navigate({
      to: ".",
      search: (before) => ({ ...before, stage }),
      replace: walked,
      resetScroll: false,
    });
  const setOrder = (order: StageOrder) =>
    void navigate({ to: ".", search: (before) => ({ ...before, order }), resetScroll: false });
  const walk = (by: number) => {
    const place = (shown ? stages.indexOf(shown) : 0) + by;
    const next = stages[Math.min(stages.length - 1, Math.max(0, place))];
    if (next) select(next.stage, true);
  };
  useKeys([
    { keys: "j", does: "Bill of the stage below", group: "Memory", run: () => walk(1) },
    { keys: "k", does: "Bill of the stage above", group: "Memory", run: () => walk(-1) },
    {
      keys: "o",
      does: "Order by stage, or the fullest first",
      group: "Memory",
      run: () => setOrder(wanted.order === "stage" ? "fullest" : "stage"),
    },
  ]);
  const sentence = memorySentence(view);
  return (
    <ChartFigure
      title="Memory by stage"
      sentence={sentence}
      table={() => <MemoryTable view={view} stages={stages} />}
    >
      <div className={styles.screen}>
        <div className={styles.chart}>
          {stages.length > 1 && <OrderChoice order={wanted.order} onOrder={setOrder} />}
          <MemoryBars
            view={view}
            stages={stages}
            selected={shown?.stage}
            onSelect={select}
            sentence={sentence}
          />
        </div>
        {shown && <StageBill planId={planId} view={view} stage={shown} />}
      </div>
    </ChartFigure>
  );
}
