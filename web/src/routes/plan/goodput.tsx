import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { asProblem, findingsAt } from "../../api/problem";
import { type GoodputQuestion, goodputQuery } from "../../api/queries/goodput";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { useKept } from "../../lib/kept";
import { useSettled } from "../../lib/settled";
import { Answer } from "./goodput/Answer";
import styles from "./goodput/Goodput.module.css";
import { FIELDS, Question } from "./goodput/Question";
import { goodputQuestion, type Typed } from "./goodput/question";
import { readGoodputSearch } from "./goodput.search";

/** A word that is being typed is one question, when it stands still. */
const ASK_AFTER_MS = 300;

/** How many tokens a day the plan trains once devices fail, checkpoints are written and nodes are repaired. */
export function GoodputTab() {
  const { planId } = useParams({ from: "/plans/$planId/goodput" });
  const said = readGoodputSearch.full(useSearch({ from: "/plans/$planId/goodput" }));
  const navigate = useNavigate();
  const write = (next: Typed) =>
    void navigate({
      to: ".",
      search: (before: object) => ({ ...before, ...next }),
      replace: true,
      resetScroll: false,
    });
  const [typed, setTyped] = useKept<Typed>(said, write, ASK_AFTER_MS);
  const question = goodputQuestion(useSettled(typed, ASK_AFTER_MS));
  const view = useQuery({
    ...goodputQuery(planId, question ?? ({} as GoodputQuestion)),
    enabled: question !== undefined,
    placeholderData: keepPreviousData,
  });
  const findings = view.error ? (asProblem(view.error).errors ?? []) : [];
  const placed = findingsAt(findings, ...FIELDS.map(([, pointer]) => pointer));
  return (
    <div className={styles.screen}>
      <Question
        typed={typed}
        findings={placed}
        onChange={(part) => setTyped((before) => ({ ...before, ...part }))}
      />
      {question === undefined ? (
        <Empty title="How fast is the storage?">
          <p>
            Checkpoints are written to it and read back after a failure. Its bandwidth has no usual value:
            give it above.
          </p>
        </Empty>
      ) : view.error ? (
        <ProblemNotice error={view.error} shownElsewhere={placed} onRetry={() => void view.refetch()} />
      ) : view.data ? (
        <Answer view={view.data} />
      ) : (
        <Loading label="goodput" height={360} lines={5} />
      )}
    </div>
  );
}
