import type { Fleet } from "../../api/queries/fleets";
import { seriesLook } from "../../charts/series";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { count, plural } from "../../lib/format";
import { useWidth } from "../../lib/size";
import styles from "./Fleet.module.css";
import { type BlockRuns, type PoolRuns, poolRuns } from "./nodeRuns";

const ROW_PX = 22;
const GAP_PX = 6;
/** Names of blocks stand left of them where there is room. */
const LABEL_PX = 150;
const ROOMY_PX = 620;
const LETTER_PX = 7;

/** The nodes of every pool, block by block, in the colour and with the number of the job that gets them. */
export function NodeMap({ fleet }: { fleet: Fleet }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const pools = poolRuns(fleet);
  const sentence = inOneSentence(fleet);
  return (
    <ChartFigure
      title="Who gets which nodes"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Nodes of each job"
          captionHidden
          columns={[
            { name: "job", title: "Job", cell: (job) => job.name },
            { name: "count", title: "Nodes", number: true, cell: (job) => count(job.nodes?.length ?? 0) },
            { name: "blocks", title: "Blocks", wraps: true, cell: (job) => job.blocks?.join(", ") },
            { name: "nodes", title: "Names", wraps: true, cell: (job) => job.nodes?.join(", ") },
          ]}
          rows={fleet.jobs}
          rowKey={(job) => job.name}
        />
      )}
    >
      <div ref={ref} className={styles.pools}>
        {width > 0 &&
          pools.map((pool) => (
            <div key={pool.name}>
              <h3>{pool.name}</h3>
              <PoolDrawing pool={pool} width={width} names={fleet.jobs.map((job) => job.name)} />
            </div>
          ))}
      </div>
      <ul className={styles.legend}>
        {fleet.jobs.map((job, place) =>
          job.pool == null ? null : (
            <li key={job.name}>
              <span className={styles.swatch} style={{ background: seriesLook(place).colour }}>
                {place + 1}
              </span>
              {job.name} {plural(job.nodes?.length ?? 0, "node")}
            </li>
          ),
        )}
      </ul>
    </ChartFigure>
  );
}

function inOneSentence(fleet: Fleet): string {
  const given = fleet.pools.reduce((sum, pool) => sum + pool.given, 0);
  const nodes = fleet.pools.reduce((sum, pool) => sum + pool.nodes, 0);
  const running = fleet.jobs.filter((job) => job.pool != null).length;
  const waiting = fleet.jobs.length - running;
  return (
    `${plural(running, "job")} ${running === 1 ? "gets" : "get"} ${count(given)} of ${plural(nodes, "node")}` +
    `${waiting > 0 ? `; ${plural(waiting, "job")} ${waiting === 1 ? "waits" : "wait"}` : ""}.`
  );
}

interface DrawingProps {
  pool: PoolRuns;
  width: number;
  names: readonly string[];
}

function PoolDrawing({ pool, width, names }: DrawingProps) {
  const roomy = width >= ROOMY_PX;
  const left = roomy ? LABEL_PX : 0;
  const step = ROW_PX + GAP_PX + (roomy ? 0 : ROW_PX);
  const largest = Math.max(...pool.blocks.map((block) => block.size), 1);
  const node = (width - left) / largest;
  return (
    <svg
      width={width}
      height={pool.blocks.length * step}
      role="img"
      aria-label={`Nodes of pool ${pool.name}: ${pool.blocks.map((block) => inWords(block, names)).join("; ")}`}
    >
      {pool.blocks.map((block, row) => (
        <g key={block.name} transform={`translate(0 ${row * step})`}>
          <text className={styles.block} x={0} y={15}>
            {block.name}
          </text>
          <g transform={`translate(${left} ${roomy ? 0 : ROW_PX})`}>
            {block.runs.map((run) => (
              <g key={run.start} transform={`translate(${run.start * node} 0)`}>
                <title>{`${run.job === undefined ? "free" : names[run.job]}: ${run.nodes.join(", ")}`}</title>
                <rect
                  className={run.job === undefined ? styles.free : undefined}
                  width={Math.max(run.nodes.length * node - 1, 0.5)}
                  height={ROW_PX}
                  rx={2}
                  fill={run.job === undefined ? "var(--paper-sunken)" : seriesLook(run.job).colour}
                />
                {run.job !== undefined && (
                  <RunLabel
                    number={run.job + 1}
                    name={names[run.job] ?? ""}
                    width={run.nodes.length * node}
                  />
                )}
              </g>
            ))}
          </g>
        </g>
      ))}
    </svg>
  );
}

/** The job's number, and its name where it fits. */
function RunLabel({ number, name, width }: { number: number; name: string; width: number }) {
  const whole = `${number} ${name}`;
  const text = whole.length * LETTER_PX + 10 < width ? whole : `${number}`;
  if (text.length * LETTER_PX + 4 > width) return null;
  return (
    <text className={styles.onRun} x={6} y={15}>
      {text}
    </text>
  );
}

function inWords(block: BlockRuns, names: readonly string[]): string {
  const runs = block.runs.map(
    (run) => `${count(run.nodes.length)} ${run.job === undefined ? "free" : `of ${names[run.job]}`}`,
  );
  return `${block.name} ${runs.join(", ")}`;
}
