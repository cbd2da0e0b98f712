import { useHatches } from "../../../charts/Hatches";
import { Legend } from "../../../charts/Legend";
import { scaleLinear } from "../../../charts/scales";
import { stackPieces } from "../../../charts/stack";
import { MEMORY_MARGIN } from "../../../charts/terms";
import { gibibytes, percent } from "../../../lib/format";
import { useWidth } from "../../../lib/size";
import styles from "./Memory.module.css";
import { type MemoryStage, type MemoryView, memoryPieces, spareWords, totalOf } from "./stages";

const ROW_PX = 40;
const BAR_PX = 24;
const AXIS_PX = 26;
const TOP_PX = 22;
const GIB = 2 ** 30;

interface Props {
  view: MemoryView;
  stages: readonly MemoryStage[];
  selected: number | undefined;
  onSelect: (stage: number) => void;
  sentence: string;
}

/** A bar a stage on one scale, with the limit through all of them; a press opens the bill. */
export function MemoryBars({ view, stages, selected, onSelect, sentence }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const pieces = stages[0] ? memoryPieces(stages[0]) : [];
  const margin = { name: "margin", look: MEMORY_MARGIN, value: view.device_memory_bytes - view.limit_bytes };
  const all = stages.reduce((sum, each) => sum + totalOf(each), 0);
  const share = (name: string) =>
    percent(stages.reduce((sum, each) => sum + (each.peak_memory_bytes[name] ?? 0), 0) / all);
  return (
    <>
      <div className={styles.bars}>
        <ol className={styles.stages} aria-label="Stages" style={{ paddingTop: TOP_PX }}>
          {stages.map((each) => (
            <li key={each.stage} style={{ height: ROW_PX }}>
              <button
                type="button"
                aria-pressed={each.stage === selected}
                onClick={() => onSelect(each.stage)}
              >
                <b>Stage {each.stage}</b>
                <span>{gibibytes(totalOf(each))}</span>
                <small>{spareWords(each.spare_bytes)}</small>
              </button>
            </li>
          ))}
        </ol>
        <div ref={ref} className={styles.plot}>
          {width > 0 && (
            <Bars
              view={view}
              stages={stages}
              width={width}
              selected={selected}
              onSelect={onSelect}
              sentence={sentence}
            />
          )}
        </div>
      </div>
      <Legend
        pieces={[...pieces.filter((each) => each.value > 0), margin]}
        figure={(piece) => (piece === margin ? gibibytes(margin.value) : share(piece.name))}
      />
    </>
  );
}

function Bars({ view, stages, width, selected, onSelect, sentence }: Props & { width: number }) {
  const hatches = useHatches();
  const most = Math.max(view.device_memory_bytes, ...stages.map(totalOf));
  const x = scaleLinear([0, most], [0, width]);
  const bottom = TOP_PX + stages.length * ROW_PX;
  const limit = x(view.limit_bytes);
  const ticks = scaleLinear([0, most / GIB], [0, width]).ticks(Math.max(2, Math.floor(width / 110)));
  return (
    <svg role="img" aria-label={sentence} width={width} height={bottom + AXIS_PX} className={styles.svg}>
      {hatches.defs}
      {ticks.map((tick) => (
        <g key={tick} transform={`translate(${x(tick * GIB)} 0)`}>
          <line y1={TOP_PX} y2={bottom} stroke="var(--line)" />
          <text
            y={bottom + 16}
            textAnchor={tick === 0 ? "start" : "middle"}
            fill="var(--ink-soft)"
            fontSize="11.5"
          >
            {gibibytes(tick * GIB)}
          </text>
        </g>
      ))}
      <rect
        x={limit}
        y={TOP_PX}
        width={x(view.device_memory_bytes) - limit}
        height={bottom - TOP_PX}
        fill={MEMORY_MARGIN.colour}
      />
      <rect
        x={limit}
        y={TOP_PX}
        width={x(view.device_memory_bytes) - limit}
        height={bottom - TOP_PX}
        fill={hatches.fill("falling")}
      />
      {stages.map((stage, row) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the button beside the bar does the same with keys
        <g
          key={stage.stage}
          transform={`translate(0 ${TOP_PX + row * ROW_PX})`}
          className={styles.row}
          onClick={() => onSelect(stage.stage)}
        >
          <rect
            width={limit}
            height={ROW_PX}
            fill={stage.stage === selected ? "var(--accent-soft)" : "transparent"}
          />
          {stackPieces(memoryPieces(stage), x(totalOf(stage))).map(({ piece, x: left, width: length }) => (
            <g key={piece.name} transform={`translate(${left} ${(ROW_PX - BAR_PX) / 2})`}>
              <rect width={length} height={BAR_PX} fill={piece.look.colour} />
              {piece.look.hatch && (
                <rect width={length} height={BAR_PX} fill={hatches.fill(piece.look.hatch)} />
              )}
            </g>
          ))}
        </g>
      ))}
      <line
        x1={limit}
        x2={limit}
        y1={TOP_PX - 6}
        y2={bottom + 4}
        stroke="var(--bad)"
        strokeWidth="2"
        strokeDasharray="6 3"
      />
      <text x={limit - 6} y={13} textAnchor="end" fill="var(--bad)" fontSize="12" fontWeight="600">
        limit {gibibytes(view.limit_bytes)}
      </text>
    </svg>
  );
}
