/** Is a text a launch script of Megatron-LM, and what does a person say beside it? */

const FLAGS =
  /(?:^|[\s"'(=])--(?:num-layers|hidden-size|num-attention-heads|tensor-model-parallel-size|pipeline-model-parallel-size|micro-batch-size|global-batch-size)\b/;
const SHELL = /^#!\s*\S*\b(?:env\s+)?(?:ba|z|da|k)?sh\b/;
const NAMES = /\.(?:sh|bash|slurm|sbatch|args)$/i;

/** By its arguments, its first line or its name: no file that describes a machine has any of them. */
export function isLaunchScript(text: string, name = ""): boolean {
  return NAMES.test(name) || SHELL.test(text) || FLAGS.test(text);
}

/** What is typed beside a script, as it was typed. */
export interface SaidBeside {
  /** `TP=2`, one a line. */
  readonly variables: string;
  /** `70b --fast`, as in a shell. */
  readonly arguments: string;
  /** Tokens of the tokenizer. */
  readonly vocabulary: string;
}

export const NOTHING_SAID: SaidBeside = { variables: "", arguments: "", vocabulary: "" };

/** `TP=2` a line -> {TP: "2"}; a line without `=` is a name that the service refuses. */
export function typedVariables(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim().replace(/^export\s+/, ""));
  return Object.fromEntries(
    lines.filter(Boolean).map((line) => {
      const at = line.indexOf("=");
      if (at < 0) return [line, ""];
      return [line.slice(0, at).trim(), unquoted(line.slice(at + 1).trim())];
    }),
  );
}

/** Words as a shell parts them, quotes taken off; null where nothing is said. */
export function typedArguments(text: string): string[] | null {
  const words = text.match(/(?:"[^"]*"|'[^']*'|\S)+/g);
  return words === null ? null : words.map(unquoted);
}

function unquoted(word: string): string {
  return word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single);
}
