/** How is a back-end named?  `NAME` or `NAME==RELEASE`, as a question's constraints say it. */

/** Every back-end that files can be written for and that trains on the devices. */
export const ANY = "any";
/** The space without a back-end's rules: for study, no files. */
export const UNRESTRICTED = "unrestricted";

/** "native, torchtitan==0.2.2" -> ["native", "torchtitan==0.2.2"]; nothing = `any`. */
export function namesIn(text: string): readonly string[] {
  const names = [...new Set(text.split(/[\s,;]+/).filter(Boolean))];
  return names.length > 0 ? names : [ANY];
}

/** As an address and a draft keep it: "" for `any`. */
export function textOf(names: readonly string[]): string {
  const own = [...new Set(names)];
  return own.length === 1 && own[0] === ANY ? "" : own.join(",");
}

export function spelled(backend: string, release: string): string {
  return release === "" ? backend : `${backend}==${release}`;
}

/** What is asked about a plan is asked inside the back-end that runs it, whatever its question allowed. */
export function ownBackend({ backend, release }: { backend: string; release: string }): string {
  return spelled(backend, release);
}

/** "megatron 0.19.2": how a person reads it. */
export function backendWords(backend: string, release: string): string {
  return `${backend} ${release}`.trim();
}

interface Known {
  readonly name: string;
  readonly title: string;
  readonly releases: readonly string[];
  /** Releases that no launch files are written for. */
  readonly predicts_only: readonly string[];
}

/** One release of a back-end that the service knows. */
export interface Offer<B extends Known = Known> {
  /** The plain name for the release that is meant by it. */
  readonly value: string;
  readonly words: string;
  readonly writesFiles: boolean;
  readonly backend: B;
}

/** Every release, each back-end's first one under its plain name. */
export function offersOf<B extends Known>(known: readonly B[]): readonly Offer<B>[] {
  return known.flatMap((backend) =>
    backend.releases.map((release, index) => ({
      value: index === 0 ? backend.name : spelled(backend.name, release),
      words: `${backend.title} ${release}`,
      writesFiles: !backend.predicts_only.includes(release),
      backend,
    })),
  );
}

/** The offer that `name` means; `megatron==0.19.2` is `megatron` where that is the first release. */
export function offerOf<B extends Known>(offers: readonly Offer<B>[], name: string): Offer<B> | undefined {
  return offers.find(
    ({ value, backend }) =>
      value === name || (value === backend.name && name === spelled(value, backend.releases[0] ?? "")),
  );
}

/** A plan's own back-end in words, and whether launch files can be written for it.  Until `known` is there: yes. */
export function ownOffer(known: readonly Known[], plan: { backend: string; release: string }) {
  if (plan.backend === UNRESTRICTED) return { words: "Unrestricted", writesFiles: false };
  const own = offerOf(offersOf(known), ownBackend(plan));
  return {
    words: own?.words ?? backendWords(plan.backend, plan.release),
    writesFiles: own?.writesFiles ?? true,
  };
}

/** What an address of an earlier release says with `target` and `version`. */
export function backendOfOldAddress(raw: Readonly<Record<string, unknown>>): unknown {
  const { target, version } = raw;
  if (target === undefined || target === "") return undefined;
  return version === undefined || version === "" ? target : spelled(String(target), String(version));
}
