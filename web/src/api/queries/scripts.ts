/** A launch script as text: what it says, and its run beside a plan. */

import { type SaidBeside, typedArguments, typedVariables } from "../../lib/launchScript";
import { typedNumber } from "../../lib/typed";
import { api, ask, type Schemas } from "../client";

export type ScriptAnswer = Schemas["ScriptAnswer"];

export interface AskedScript {
  readonly text: string;
  readonly name?: string;
  readonly beside?: SaidBeside;
  /** The plan that is not the script's run. */
  readonly plan?: string;
}

/** Throws ApiProblem with findings at /text, /variables, /vocab_size. */
export async function readScript({ text, name, beside, plan }: AskedScript): Promise<ScriptAnswer> {
  const said = beside && {
    variables: typedVariables(beside.variables),
    arguments: typedArguments(beside.arguments),
    vocab_size: typedNumber(beside.vocabulary),
  };
  // The server fills in what is absent; the types of the document name defaults as present.
  const body = { text, name, plan, ...said } as unknown as Schemas["ScriptRequest"];
  // openapi-fetch turns the pairs of a plan into lists.
  return (await ask(api.POST("/v1/scripts:read", { body }))) as ScriptAnswer;
}
