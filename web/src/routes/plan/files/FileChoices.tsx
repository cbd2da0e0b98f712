import { useQuery } from "@tanstack/react-query";
import { backendsQuery } from "../../../api/queries/catalogue";
import type { PlanAnswer } from "../../../api/queries/plans";
import { ChoiceField } from "../../../components/ChoiceField";
import { offerOf, offersOf, ownBackend, ownOffer } from "../../../lib/backends";

interface Choice {
  /** "" = the plan's own. */
  readonly backend: string;
  readonly launcher: string;
}

interface Props {
  plan: PlanAnswer;
  chosen: Choice;
  choose: (part: Partial<Choice> & { file?: string }) => void;
}

/** For which back-end, the plan's own first, and for who starts its processes. */
export function FileChoices({ plan, chosen, choose }: Props) {
  const { data: known = [] } = useQuery(backendsQuery);
  const offers = offersOf(known).filter((each) => each.writesFiles);
  const own = offerOf(offers, ownBackend(plan));
  const others = offers.filter((each) => each !== own).map((each) => each.value);
  const at = chosen.backend === "" ? own : offerOf(offers, chosen.backend);
  const value = at === own && (own || chosen.backend === "") ? "" : (at?.value ?? chosen.backend);
  const launchers = at?.backend.launchers ?? [];
  const names: Record<string, string> = Object.fromEntries(offers.map((each) => [each.value, each.words]));
  names[""] = `${ownOffer(known, plan).words} (this plan)`;
  return (
    <>
      <ChoiceField
        label="Back-end"
        value={value}
        choices={["", ...withChoice(others, value)]}
        names={names}
        onChange={(backend) => choose({ backend, file: "" })}
      />
      <ChoiceField
        label="Launcher"
        value={chosen.launcher}
        choices={withChoice(launchers, chosen.launcher)}
        onChange={(launcher) => choose({ launcher, file: "" })}
      />
    </>
  );
}

/** What an address names stays a choice, so that the answer can say what is wrong with it. */
function withChoice(values: readonly string[], value: string): readonly string[] {
  return value === "" || values.includes(value) ? values : [value, ...values];
}
