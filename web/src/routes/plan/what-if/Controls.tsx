import { useQuery } from "@tanstack/react-query";
import type { Finding } from "../../../api/problem";
import { backendsQuery, clustersQuery } from "../../../api/queries/catalogue";
import type { PlanAnswer } from "../../../api/queries/plans";
import { offerOf, offersOf } from "../../../lib/backends";
import { RELIEF_FIELDS } from "../../../lib/relief";
import { ChoiceControl } from "./ChoiceControl";
import { DegreeControl } from "./DegreeControl";
import {
  type Chosen,
  DEGREES,
  type DegreeName,
  type FieldName,
  LEVERS,
  planValue,
  QUESTION_CHOICES,
  SIZES,
  type SwitchName,
  stopsOf,
} from "./fields";
import { LeverControl } from "./LeverControl";
import { keepsOwn } from "./question";
import styles from "./WhatIf.module.css";

interface Props {
  plan: PlanAnswer;
  chosen: Chosen;
  /** Strategy of the present estimate, with what followed from the choices. */
  estimated: Readonly<Record<string, unknown>> | undefined;
  change: (name: FieldName, value: string) => void;
  findings: Readonly<Partial<Record<FieldName, readonly Finding[]>>>;
}

const SWITCHES_OF_STRATEGY = ["schedule", "recompute", "zero_stage"] as const;
const OFFLOADS = ["optimizer_offload", "activation_offload"] as const;

/** An estimate's strategy names the policy alone, not which layers use it. */
const isRelief = (name: FieldName) => RELIEF_FIELDS.some((field) => field === name);

/** Every choice of the plan that can be turned, and the figures of the machine. */
export function Controls({ plan, chosen, estimated, change, findings }: Props) {
  const experts = plan.problem.model.layer_kinds.some((kind) => kind.moe);
  const degrees = DEGREES.filter((name) => name !== "ep" || experts || chosen.ep !== "");
  // What is not chosen is the plan's own, or what the service made of it because something else was.
  const shown = (name: FieldName) =>
    chosen[name] ||
    (name !== "devices" && !isRelief(name) && estimated?.[name] !== undefined
      ? String(estimated[name])
      : planValue(plan, name));
  const set = (name: FieldName) => (value: string) =>
    change(name, value === planValue(plan, name) && keepsOwn(plan, chosen, name) ? "" : value);
  const offers = useOffers(planValue(plan, "backend"));
  const degree = (name: DegreeName) => {
    const value = shown(name);
    return (
      <DegreeControl
        key={name}
        name={name}
        own={planValue(plan, name)}
        changed={chosen[name] !== ""}
        value={value}
        stops={stopsOf(plan, name, Number(value))}
        onChange={set(name)}
        findings={findings[name] ?? []}
      />
    );
  };
  const choice = (name: SwitchName) => (
    <ChoiceControl
      key={name}
      name={name}
      own={planValue(plan, name)}
      changed={chosen[name] !== ""}
      value={shown(name)}
      onChange={set(name)}
      findings={findings[name] ?? []}
      offers={offers[name]}
    />
  );
  return (
    <>
      <fieldset className={styles.group}>
        <legend>Degrees</legend>
        {degrees.map(degree)}
      </fieldset>
      <fieldset className={styles.group}>
        <legend>Schedule and memory</legend>
        {[...SWITCHES_OF_STRATEGY, ...OFFLOADS].map(choice)}
      </fieldset>
      <fieldset className={styles.group}>
        <legend>What is trained, and where</legend>
        {SIZES.map(degree)}
        {QUESTION_CHOICES.map(choice)}
      </fieldset>
      <fieldset className={styles.group}>
        <legend>If the machine were</legend>
        {LEVERS.map((name) => (
          <LeverControl
            key={name}
            name={name}
            value={chosen[name] || "1"}
            onChange={set(name)}
            findings={findings[name] ?? []}
          />
        ))}
      </fieldset>
    </>
  );
}

/** Clusters and back-ends that the service knows; the plan's own release under its whole name. */
function useOffers(
  own: string,
): Readonly<Partial<Record<SwitchName, readonly { value: string; words: string }[]>>> {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const { data: backends = [] } = useQuery(backendsQuery);
  const offers = offersOf(backends);
  const ownOffer = offerOf(offers, own);
  return {
    cluster: clusters.map(({ name }) => ({ value: name, words: name })),
    backend: offers.map((each) => ({ value: each === ownOffer ? own : each.value, words: each.words })),
  };
}
