/** What does somebody say about files that they do not say themselves?  "operation=all_gather, group_size=16". */

import type { Finding } from "../../api/problem";
import type { ClustersSearch } from "../clusters.search";

export interface Facts {
  readonly facts: Record<string, string>;
  readonly findings: readonly Finding[];
}

export function typedFacts(text: string): Facts {
  const facts: Record<string, string> = {};
  const findings: Finding[] = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const [, name = "", value = ""] = /^([^=]+)=(.+)$/.exec(word) ?? [];
    if (name === "" || value === "")
      findings.push({ pointer: "/facts", detail: `${word} is not NAME=VALUE`, hint: "write group_size=16" });
    else if (name in facts && facts[name] !== value)
      findings.push({ pointer: "/facts", detail: `${name} is given twice`, hint: "keep one of the two" });
    else facts[name.toLowerCase().replaceAll("-", "_")] = value;
  }
  return { facts, findings };
}

/** Facts with the device, which has a field of its own. */
export function factsOf({ facts: text, measured }: Pick<ClustersSearch, "facts" | "measured">): Facts {
  const typed = typedFacts(text);
  if (measured === "") return typed;
  const { device } = typed.facts;
  const findings =
    device !== undefined && device !== measured
      ? [{ pointer: "/facts", detail: "the device is given twice", hint: "choose it above only" }]
      : [];
  return { facts: { ...typed.facts, device: measured }, findings: [...typed.findings, ...findings] };
}
