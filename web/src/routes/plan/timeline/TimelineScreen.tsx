import { lazy, useDeferredValue, useMemo, useState } from "react";
import { brushOf } from "../../../charts/step/brush";
import type { StepColumns } from "../../../charts/step/columns";
import { rowsOf } from "../../../charts/step/rows";
import { ChartFigure } from "../../../components/ChartFigure";
import { useColours } from "../../../lib/colours";
import { useWidth } from "../../../lib/size";
import { ActionPanel } from "./ActionPanel";
import { stepSentence } from "./describe";
import type { Hovered } from "./hovered";
import { MemoryTrack } from "./MemoryTrack";
import { Minimap } from "./Minimap";
import { RankGutter } from "./RankGutter";
import { Ruler } from "./Ruler";
import { TimeLegend } from "./TimeLegend";
import styles from "./Timeline.module.css";
import { Toolbar } from "./Toolbar";
import { Tracks } from "./Tracks";
import { useSelection } from "./useSelection";
import { movesOf, useTimelineKeys } from "./useTimelineKeys";
import { useTimeWindow } from "./useTimeWindow";

const StepTables = lazy(async () => ({ default: (await import("./StepTables")).StepTables }));

interface Props {
  planId: string;
  step: StepColumns;
}

/** Rows of ranks over time, with what stands out, and the memory of one rank beneath. */
export function TimelineScreen({ planId, step }: Props) {
  const selection = useSelection(step);
  const view = useTimeWindow(selection.asked, step.makespan_ns + step.after_ns);
  const moves = movesOf(step, view, selection);
  useTimelineKeys(moves, selection);
  const [hovered, setHovered] = useState<Hovered>();
  const colours = useColours();
  const brush = useMemo(() => brushOf(step.kinds, colours), [step, colours]);
  const rows = useMemo(() => rowsOf(step.num_ranks), [step]);
  const { ref, width } = useWidth<HTMLDivElement>();
  // The table behind the chart may lag behind a hand that moves the window.
  const settled = useDeferredValue(view.window);
  const scene = { step, window: view.window, width, rows, brush };
  const sentence = stepSentence(step);
  return (
    <ChartFigure
      title="One step, rank by rank"
      sentence={sentence}
      table={() => <StepTables step={step} window={settled} rank={selection.rank} />}
    >
      <Toolbar planId={planId} step={step} moves={moves} selection={selection} />
      <div className={styles.screen}>
        <div className={styles.chart}>
          <div className={styles.corner}>Whole step</div>
          <Minimap step={step} brush={brush} view={view} width={width} />
          <div className={styles.corner}>Rank, idle</div>
          <Ruler window={view.window} width={width} />
          <RankGutter step={step} rows={rows} selection={selection} />
          <div ref={ref} className={styles.tracks}>
            {width > 0 && (
              <Tracks
                scene={scene}
                view={view}
                moves={moves}
                selection={selection}
                hovered={hovered}
                onHover={setHovered}
                sentence={sentence}
              />
            )}
          </div>
          <MemoryTrack
            step={step}
            rank={selection.rank}
            window={view.window}
            width={width}
            time_ns={hovered?.time_ns}
          />
        </div>
        <ActionPanel step={step} selection={selection} moves={moves} />
      </div>
      <TimeLegend step={step} />
    </ChartFigure>
  );
}
