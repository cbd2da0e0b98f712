/** How is a strategy written short?  What is on, as `tp 4`; what is off is left out. */

export interface StrategyPart {
  readonly name: string;
  readonly value: string;
}

/** Degrees that are always shown, then those that are not 1. */
const DEGREES = ["tp", "pp", "dp", "cp", "ep", "etp"] as const;
const ALWAYS: ReadonlySet<string> = new Set(["tp", "pp", "dp"]);

export function strategyParts(strategy: Readonly<Record<string, unknown>>): readonly StrategyPart[] {
  const parts: StrategyPart[] = [];
  const add = (name: string, value: unknown) => parts.push({ name, value: String(value) });
  for (const degree of DEGREES) {
    const value = strategy[degree];
    if (value !== undefined && (ALWAYS.has(degree) || value !== 1)) add(degree, value);
  }
  if (strategy.vpp !== 1) add("vpp", strategy.vpp);
  if (strategy.pp !== 1) add("schedule", strategy.schedule);
  add("zero", strategy.zero_stage);
  add("micro-batch", `${strategy.micro_batch_size} × ${strategy.num_microbatches}`);
  if (strategy.sp === true) add("sequence parallel", "on");
  if (strategy.recompute !== "none") add("recompute", strategy.recompute);
  const kept = strategy.activation_offload;
  const which = typeof kept === "string" ? ` ${kept}` : "";
  const offloaded = [kept && `activations${which}`, strategy.optimizer_offload && "optimizer"];
  if (offloaded.some(Boolean)) add("offload", offloaded.filter(Boolean).join(", "));
  return parts;
}

/** The same in one line: `tp 4, pp 4, dp 4, zero 1`. */
export function strategyWords(strategy: Readonly<Record<string, unknown>>): string {
  return strategyParts(strategy)
    .map(({ name, value }) => `${name} ${value}`)
    .join(", ");
}
