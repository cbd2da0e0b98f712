import type { TermChange } from "../../api/queries/variants";
import { lookOf, MEMORY_TERMS } from "../../charts/terms";
import { bytesChange, gibibytes } from "../../lib/format";
import { TermChanges } from "./TermChanges";

interface Props {
  terms: readonly TermChange[];
  a: string;
  b: string;
}

/** Bytes of the fullest device that each part takes or frees. */
export function MemoryChanges(props: Props) {
  return (
    <TermChanges
      {...props}
      title="Memory of the fullest device by part"
      unit={gibibytes}
      change={bytesChange}
      look={(name) => lookOf(MEMORY_TERMS, name)}
    />
  );
}
