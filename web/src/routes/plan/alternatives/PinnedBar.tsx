import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { PlanAnswer } from "../../../api/queries/plans";
import { variantQuery } from "../../../api/queries/variants";
import { Button } from "../../../components/Button";
import { Infeasible, isInfeasible } from "../../../components/Infeasible";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { useKeys } from "../../../lib/keys";
import styles from "./Alternatives.module.css";
import type { Choice } from "./choices";
import type { ChoicesView } from "./useChoices";

interface Props {
  plan: PlanAnswer;
  choices: readonly Choice[];
  view: ChoicesView;
}

/** The pinned choices; two of them are solved where they are no plan yet, and compared. */
export function PinnedBar({ plan, choices, view }: Props) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const pinned = view.search.pinned.flatMap((id) => choices.find((each) => each.id === id) ?? []);
  const comparing = useMutation({
    mutationFn: async () => {
      const ids: string[] = [];
      for (const each of pinned) {
        const solved = each.pins
          ? await queries.fetchQuery(variantQuery(plan, each.pins))
          : { plan: plan.plan_id };
        if ("job" in solved) {
          await navigate({ to: "/jobs/$jobId", params: { jobId: solved.job } });
          return;
        }
        ids.push(solved.plan);
      }
      const [a, b] = ids;
      if (a && b) await navigate({ to: "/diff/$a/$b", params: { a, b } });
    },
  });
  const ready = pinned.length === 2 && !comparing.isPending;
  useKeys([
    {
      keys: "d",
      does: "Compare the two pinned alternatives",
      group: "Alternatives",
      run: () => ready && comparing.mutate(),
    },
  ]);
  if (pinned.length === 0) return null;
  return (
    <section className={styles.pinned}>
      <h3>Pinned</h3>
      <ul>
        {pinned.map((each) => (
          <li key={each.id}>
            <span>{each.name}</span>
            <Button look="quiet" aria-label={`Unpin ${each.name}`} onClick={() => view.pin(each.id)}>
              ×
            </Button>
          </li>
        ))}
      </ul>
      <Button look="primary" disabled={!ready} onClick={() => comparing.mutate()}>
        {comparing.isPending
          ? "Solving both\u2026"
          : pinned.length === 2
            ? "Compare the two"
            : "Pin one more"}
      </Button>
      {comparing.error &&
        (isInfeasible(comparing.error) ? (
          <Infeasible error={comparing.error} />
        ) : (
          <ProblemNotice error={comparing.error} />
        ))}
    </section>
  );
}
