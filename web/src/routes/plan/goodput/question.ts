/** What is asked of the API, from what was typed. */

import type { GoodputQuestion } from "../../../api/queries/goodput";
import { typedNumber } from "../../../lib/typed";
import type { readGoodputSearch } from "../goodput.search";

export type Typed = ReturnType<typeof readGoodputSearch.full>;

const GIGA = 1e9;

/** The question, or undefined as long as the storage is not known: it has no usual value. */
export function goodputQuestion(typed: Typed): GoodputQuestion | undefined {
  const storage = typedNumber(typed.storage);
  if (storage === undefined) return undefined;
  const question: GoodputQuestion = {
    // What is no number goes to the API as it is, which says what is wrong with it.
    storage_bandwidth_bytes_per_s: typeof storage === "number" ? storage * GIGA : storage,
    asynchronous: typed.asynchronous || undefined,
    failures_per_device_hour: typedNumber(typed.rate),
    restart_s: typedNumber(typed.restart),
    repair_hours: typedNumber(typed.repair),
    spare_nodes: typedNumber(typed.spares),
    tokens: typedNumber(typed.tokens),
    price_per_device_hour: typedNumber(typed.price),
  };
  return question;
}
