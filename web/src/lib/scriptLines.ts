/** What became of a script's arguments, and what its text leaves open: lines to show, each with its title. */

import type { ScriptAnswer } from "../api/queries/scripts";

export type ScriptLists = Pick<
  ScriptAnswer,
  | "arguments"
  | "derived"
  | "undecided"
  | "taken_as_unset"
  | "left_out"
  | "set_by_script"
  | "launches"
  | "held_to"
>;

export interface ScriptLine {
  readonly title: string;
  readonly text: string;
}

/** Nothing is left out but what the service counts as used or without influence. */
export function scriptLines(read: ScriptLists): readonly ScriptLine[] {
  const { used, no_influence, not_modelled, unknown } = read.arguments;
  const named = (title: string, texts: readonly string[] = []) => texts.map((text) => ({ title, text }));
  const unset = (read.taken_as_unset ?? []).map(({ name, line }) => `${name} (line ${line})`);
  const places = (read.undecided ?? []).map(({ line, what, say }) => `line ${line}: ${what}; ${say}`);
  return [
    {
      title: "arguments",
      text: `${used.length} used, ${no_influence.length} without influence on the plan, ${not_modelled.length} not modelled`,
    },
    ...named("derived", read.derived),
    ...named("not modelled", not_modelled),
    ...named("not known", unknown),
    ...named("undecided", places),
    ...named("left out", read.left_out),
    ...named("taken as not set", unset.length > 0 ? [unset.join(", ")] : []),
    ...named("set by the script", read.set_by_script),
    ...named("held to", read.held_to),
    ...named("runs", read.launches > 1 ? [`${read.launches} are started, the first is read`] : []),
  ];
}
