import type { Goodput } from "../../../api/queries/goodput";
import { Legend } from "../../../charts/Legend";
import { StackedBar } from "../../../charts/StackedBar";
import { ChartFigure } from "../../../components/ChartFigure";
import { DataTable } from "../../../components/DataTable";
import { bytes, compact, count, dollars, percent, plural, seconds } from "../../../lib/format";
import { useWidth } from "../../../lib/size";
import styles from "./Goodput.module.css";
import { timeParts } from "./timeParts";

/** Whole days, parts of them where there are few. */
const days = (value: number): string => (value < 100 ? compact(value, 3) : count(value));

/** The tokens a day and what they are made of. */
export function Answer({ view }: { view: Goodput }) {
  return (
    <>
      <TimeFigure view={view} />
      <Facts view={view} />
      <div className={styles.tables}>
        <Failures view={view} />
        {view.spares.length > 0 && <Spares view={view} />}
      </div>
      <section>
        <h2>Assumed</h2>
        <ul className={styles.assumptions}>
          {view.assumptions.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      </section>
    </>
  );
}

function TimeFigure({ view }: { view: Goodput }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const parts = timeParts(view);
  const sentence =
    `${compact(view.tokens_per_day)} tokens a day: ${percent(view.useful)} of the time counts,` +
    ` ${percent(1 - view.useful)} trains nothing.`;
  return (
    <ChartFigure
      title="Where the time goes"
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Parts of the time"
          captionHidden
          columns={[
            { name: "part", title: "Part", cell: (row) => row.look.label },
            { name: "share", title: "Share", number: true, cell: (row) => percent(row.value, 2) },
            { name: "day", title: "A day", number: true, cell: (row) => seconds(row.value * 86_400) },
          ]}
          rows={parts}
          rowKey={(row) => row.name}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && <StackedBar pieces={parts} width={width} height={28} sentence={sentence} />}
      </div>
      <Legend pieces={parts} figure={(piece) => percent(piece.value, 2)} />
    </ChartFigure>
  );
}

function Facts({ view }: { view: Goodput }) {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Without failures and checkpoints", `${compact(view.tokens_per_day_without_failures)} tokens a day`],
    [
      "A checkpoint every",
      view.interval_steps == null
        ? "never: nothing fails"
        : `${plural(view.interval_steps, "step")}, ${seconds(view.interval_s)}`,
    ],
    ["By Young's formula", view.young_interval_s == null ? undefined : seconds(view.young_interval_s)],
    ["A checkpoint", `${bytes(view.checkpoint_bytes)}, written in ${seconds(view.checkpoint_write_s)}`],
    ["The steps wait for it", seconds(view.checkpoint_stall_s)],
    ["From a failure to the first step", seconds(view.restart_s)],
    [
      "A failure every",
      view.mean_time_between_failures_s == null ? "never" : seconds(view.mean_time_between_failures_s),
    ],
    ["Spare nodes", view.spare_nodes == null ? undefined : count(view.spare_nodes)],
    ["To the goal", view.days == null ? undefined : `${days(view.days)} days`],
    ["It costs", view.cost == null ? undefined : dollars(view.cost)],
  ];
  return (
    <dl className={styles.facts} aria-label="Checkpoints, failures and the goal">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function Failures({ view }: { view: Goodput }) {
  return (
    <section>
      <h2>Failures</h2>
      <p>{view.failures_source}</p>
      <DataTable
        caption="Failures of the whole job by kind"
        captionHidden
        columns={[
          { name: "kind", title: "Kind", cell: (row) => row.kind },
          { name: "per_day", title: "A day", number: true, cell: (row) => compact(row.per_day) },
          {
            name: "node",
            title: "The node",
            cell: (row) => (row.takes_node ? "is out until repaired" : "stays"),
          },
        ]}
        rows={view.failures}
        rowKey={(row) => row.kind}
      />
    </section>
  );
}

function Spares({ view }: { view: Goodput }) {
  return (
    <section>
      <h2>Spare nodes</h2>
      <p>
        {view.best_spare_nodes == null
          ? ""
          : `Most tokens a day of each device, spares among them: ${plural(view.best_spare_nodes, "spare node")}.`}
      </p>
      <DataTable
        caption="What spare nodes give"
        captionHidden
        columns={[
          { name: "spare_nodes", title: "Spare nodes", cell: (row) => count(row.spare_nodes) },
          { name: "waiting", title: "Waiting", number: true, cell: (row) => percent(row.waiting, 2) },
          { name: "tokens", title: "Tokens a day", number: true, cell: (row) => compact(row.tokens_per_day) },
          {
            name: "each",
            title: "A day, of each device",
            number: true,
            cell: (row) => compact(row.tokens_per_device_day),
          },
        ]}
        rows={view.spares}
        rowKey={(row) => row.spare_nodes}
        isCurrent={(row) => row.spare_nodes === view.spare_nodes}
      />
    </section>
  );
}
