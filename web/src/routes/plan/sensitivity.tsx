import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type Sensitivity, sensitivityQuery } from "../../api/queries/sensitivity";
import { Tornado } from "../../charts/tornado/Tornado";
import { ChartFigure } from "../../components/ChartFigure";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { useKeys } from "../../lib/keys";
import { useWidth } from "../../lib/size";
import { FlipControls } from "./sensitivity/FlipControls";
import { LeverTable } from "./sensitivity/LeverTable";
import { MarkLegend } from "./sensitivity/MarkLegend";
import { changesOf, mergedPoints, tornadoRows } from "./sensitivity/points";
import styles from "./sensitivity/Sensitivity.module.css";
import { type Flips, useFlips } from "./sensitivity/useFlips";
import { readSensitivitySearch } from "./sensitivity.search";

type Search = ReturnType<typeof readSensitivitySearch.full>;
type Change = (part: Partial<Search>, replace?: boolean) => void;

/** How far the plan leans on each input: its speed when one is off, and where another plan would be better. */
export function SensitivityTab() {
  const { planId } = useParams({ from: "/plans/$planId/sensitivity" });
  const search = readSensitivitySearch.full(useSearch({ from: "/plans/$planId/sensitivity" }));
  const navigate = useNavigate();
  const changes = changesOf(search.by);
  const view = useQuery(sensitivityQuery(planId, changes, false));
  const flips = useFlips(planId, changes, search.flips);
  const change: Change = (part, replace = false) =>
    void navigate({
      to: ".",
      search: (before: object) => ({ ...before, ...part }),
      replace,
      resetScroll: false,
    });
  if (view.error) return <ProblemNotice error={view.error} onRetry={() => void view.refetch()} />;
  return (
    <div className={styles.screen}>
      <FlipControls search={search} changes={changes} flips={flips} onChange={change} />
      {view.data ? (
        <TornadoFigure view={view.data} flips={flips} search={search} onChange={change} />
      ) : (
        <Loading label="sensitivity" height={420} lines={5} />
      )}
    </div>
  );
}

interface FigureProps {
  view: Sensitivity;
  flips: Flips;
  search: Search;
  onChange: Change;
}

function TornadoFigure({ view, flips, search, onChange }: FigureProps) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const points = mergedPoints(view.points, flips.points);
  const rows = tornadoRows(view, points);
  const order = rows.map((each) => each.name);
  const chosen = order.includes(search.lever) ? search.lever : (order[0] ?? "");
  const walk = (by: number) => {
    const next = order[(order.indexOf(chosen) + by + order.length) % order.length];
    if (next) onChange({ lever: next }, true);
  };
  useKeys([
    { keys: "j", does: "Next input", group: "Sensitivity", run: () => walk(1) },
    { keys: "k", does: "Previous input", group: "Sensitivity", run: () => walk(-1) },
    {
      keys: "p",
      does: "Where does the plan flip?",
      group: "Sensitivity",
      run: () => onChange({ flips: true }),
    },
  ]);
  const name = chosen.replaceAll("_", " ");
  return (
    <>
      <ChartFigure
        title="What if an input is off"
        sentence={view.summary}
        table={() => <LeverTable caption="Every input under every change" captionHidden points={points} />}
      >
        <div ref={ref}>
          {width > 0 && <Tornado rows={rows} width={width} sentence={view.summary} chosen={chosen} />}
        </div>
        <MarkLegend />
      </ChartFigure>
      <section className={styles.closer}>
        <div className={styles.row}>
          <h2>Look closer</h2>
          <label>
            <span className="visually-hidden">Input</span>
            <select value={chosen} onChange={(event) => onChange({ lever: event.target.value }, true)}>
              {order.map((each) => (
                <option key={each} value={each}>
                  {each.replaceAll("_", " ")}
                </option>
              ))}
            </select>
          </label>
        </div>
        <LeverTable caption={`When ${name} is off`} points={points.filter((each) => each.lever === chosen)} />
      </section>
    </>
  );
}
