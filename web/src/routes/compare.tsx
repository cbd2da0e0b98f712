import { useQueries } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ApiProblem, type Finding } from "../api/problem";
import { throughputQuery } from "../api/queries/throughput";
import { Button } from "../components/Button";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { useKeys } from "../lib/keys";
import { saveFile } from "../lib/save";
import { useSettled } from "../lib/settled";
import styles from "./compare/Compare.module.css";
import { CompareForm } from "./compare/CompareForm";
import { CompareTable } from "./compare/CompareTable";
import { rowsOf, tokensOf } from "./compare/curves";
import { QuantityFigures } from "./compare/QuantityFigures";
import { clustersOf, questionsOf } from "./compare/questions";
import { type CompareSearch, readCompareSearch } from "./compare.search";

const ASK_AFTER_MS = 600;

/** One model on several clusters and device counts: tokens a second, utilization, cost. */
export function Compare() {
  const search = readCompareSearch.full(useSearch({ from: "/compare" }));
  const navigate = useNavigate();
  const write = (part: Partial<CompareSearch>) =>
    void navigate({
      to: ".",
      search: (before) => ({ ...before, ...part }),
      replace: true,
      resetScroll: false,
    });
  const { point: _looked, tokens: _budget, ...asked } = search;
  const settled = JSON.parse(useSettled(JSON.stringify(asked), ASK_AFTER_MS)) as Omit<
    CompareSearch,
    "point" | "tokens"
  >;
  const questions = questionsOf(settled);
  const answers = useQueries({ queries: questions.map((each) => throughputQuery(each.body)) });
  const rows = questions.flatMap(({ cluster }, index) => rowsOf(cluster, answers[index]?.data ?? []));
  const errors = answers.flatMap((each) => each.error ?? []);
  const findings = errors.flatMap((error) =>
    error instanceof ApiProblem ? (error.problem.errors ?? []) : [],
  );
  const waiting = questions.filter((_, index) => answers[index]?.isPending).map((each) => each.cluster);
  const walk = (step: number) => {
    const at = rows.findIndex((each) => each.id === search.point);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : (at + step + rows.length) % rows.length];
    if (next) write({ point: next.id });
  };
  const group = "Comparison";
  useKeys([
    { keys: "j", does: "Next point", group, run: () => walk(1) },
    { keys: "k", does: "Previous point", group, run: () => walk(-1) },
    { keys: "Escape", does: "Choose no point", group, run: () => write({ point: "" }) },
  ]);
  const unplaced = errors.find((error) => !(error instanceof ApiProblem && error.problem.errors?.length));
  const picture = { clusters: clustersOf(settled), rows, selected: search.point };
  const select = (point: string) => write({ point });
  return (
    <div className={styles.screen}>
      <PageHead title="Compare clusters">
        <Button disabled={rows.length === 0 || waiting.length > 0} onClick={() => void saveReport(search)}>
          Save as HTML
        </Button>
      </PageHead>
      <CompareForm search={search} write={write} findings={distinct(findings)} />
      {unplaced && (
        <ProblemNotice error={unplaced} onRetry={() => answers.forEach((each) => void each.refetch())} />
      )}
      <p className={styles.status} role="status">
        {waiting.length > 0 ? `Planning on ${waiting.join(", ")}\u2026` : undecidedWords(rows)}
      </p>
      <QuantityFigures {...picture} onSelect={select} />
      <CompareTable {...picture} tokens={tokensOf(search.tokens)} onSelect={select} />
    </div>
  );
}

/** What is shown, as one file. */
async function saveReport(search: CompareSearch): Promise<void> {
  const { pageFile } = await import("../lib/pageFile");
  const main = document.getElementById("main");
  if (!main) return;
  const title = `${search.model} on ${clustersOf(search).join(", ")}`;
  const asked = [
    ["global batch", search.batch],
    ["sequence", search.seq],
    ["precision", search.precision],
    ["back-end", search.backend || "all that train on the devices"],
    ["prices a device-hour", search.prices.join(", ") || "none"],
    ["tokens to train", search.tokens || "not said"],
  ] as const;
  saveFile(`compare-${search.model}.html`, pageFile(main, title, asked));
}

/** The same refusal comes once for each cluster. */
function distinct(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(
    (each, index) =>
      findings.findIndex((other) => other.pointer === each.pointer && other.detail === each.detail) === index,
  );
}

function undecidedWords(rows: readonly { point: { fits?: boolean | null } }[]): string {
  const undecided = rows.filter((row) => row.point.fits == null).length;
  return undecided > 0
    ? `${undecided} of ${rows.length} points are undecided: their reason is in the table.`
    : "";
}
