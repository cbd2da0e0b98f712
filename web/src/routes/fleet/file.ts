/** What becomes of a fleet file when it is shared again, some nodes gone, from an earlier answer. */

import example from "../../../../examples/fleet/fleet.yaml?raw";
import { remember, remembered } from "../../lib/storage";

const KEPT = "meshwright.fleet";
export const EXAMPLE: string = example;

/** The file as it was typed last. */
export function keptFile(): string {
  const kept = remembered(KEPT);
  return typeof kept === "string" ? kept : "";
}

export function keepFile(file: string): void {
  remember(KEPT, file || undefined);
}

export interface Again {
  /** Id of the earlier answer. */
  readonly former: string;
  /** Host lists, with commas or spaces between them. */
  readonly lost: string;
  readonly fewest: boolean;
}

/** The same question after an earlier answer; these parts take the place of those that the file had. */
export function again(file: string, { former, lost, fewest }: Again): string {
  const parts = {
    former,
    lost_nodes: hostLists(lost),
    moves: fewest ? "fewest" : "when_it_pays",
  };
  if (file.trimStart().startsWith("{"))
    return `${JSON.stringify({ ...JSON.parse(file), ...parts }, null, 2)}\n`;
  const lines = file.trimEnd().split("\n");
  const kept = lines.filter((line) => !/^(former|lost_nodes|moves):/.test(line));
  const said = Object.entries(parts).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `${[...kept, ...said].join("\n")}\n`;
}

/** Host lists that are typed in a row; commas within brackets belong to a list. */
export function hostLists(typed: string): readonly string[] {
  return (typed.match(/(?:[^\s,[]|\[[^\]]*\])+/g) ?? []).map(String);
}
