import { Link } from "@tanstack/react-router";
import type { PlanAnswer } from "../../api/queries/plans";
import { buttonClass } from "../../components/Button";
import { searchOfProblem } from "./questionAgain";

/** To the form, with the question of a plan typed in. */
export function ChangeQuestion({ problem }: { problem: PlanAnswer["problem"] }) {
  return (
    <Link to="/" search={searchOfProblem(problem)} className={buttonClass()}>
      Change the question
    </Link>
  );
}
