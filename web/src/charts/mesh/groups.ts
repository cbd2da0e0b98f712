/** Which ranks talk to each other?  A group is a rank's coordinates on a few digits of its number, all others equal. */

export interface Factor {
  readonly size: number;
  readonly stride: number;
}

const digit = (rank: number, { size, stride }: Factor): number => Math.floor(rank / stride) % size;

/** Place of a rank in its group, innermost factor first. */
export function memberIndex(rank: number, factors: readonly Factor[]): number {
  let [index, weight] = [0, 1];
  for (const factor of factors) {
    index += digit(rank, factor) * weight;
    weight *= factor.size;
  }
  return index;
}

/** All ranks of the group that a rank is in, by their place in it. */
export function groupOf(rank: number, factors: readonly Factor[]): readonly number[] {
  const base = rank - factors.reduce((sum, factor) => sum + digit(rank, factor) * factor.stride, 0);
  return factors.reduce<number[]>(
    (members, { size, stride }) =>
      Array.from({ length: size }, (_, at) => members.map((member) => member + at * stride)).flat(),
    [base],
  );
}

/** Place in its group of every rank: what a map is coloured by. */
export function memberIndices(ranks: number, factors: readonly Factor[]): Uint32Array {
  return Uint32Array.from({ length: ranks }, (_, rank) => memberIndex(rank, factors));
}
