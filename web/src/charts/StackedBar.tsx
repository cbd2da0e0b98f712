import { useHatches } from "./Hatches";
import { type Piece, stackPieces } from "./stack";

interface Props {
  pieces: readonly Piece[];
  width: number;
  height: number;
  /** What the bar says, for those who do not see it. */
  sentence: string;
}

/** One bar of pieces that add up to its length. */
export function StackedBar({ pieces, width, height, sentence }: Props) {
  const hatches = useHatches();
  return (
    <svg role="img" aria-label={sentence} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      {hatches.defs}
      {stackPieces(pieces, width).map(({ piece, x, width: length }) => (
        <g key={piece.name}>
          <rect x={x} width={length} height={height} fill={piece.look.colour} />
          {piece.look.hatch && (
            <rect x={x} width={length} height={height} fill={hatches.fill(piece.look.hatch)} />
          )}
        </g>
      ))}
    </svg>
  );
}
