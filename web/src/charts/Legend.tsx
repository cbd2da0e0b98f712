import { useHatches } from "./Hatches";
import styles from "./Legend.module.css";
import type { Piece } from "./stack";

interface Props {
  pieces: readonly Piece[];
  /** The figure beside each name. */
  figure: (piece: Piece) => string;
}

/** Which colour and hatch means what, with its figure. */
export function Legend({ pieces, figure }: Props) {
  return (
    <ul className={styles.legend}>
      {pieces.map((piece) => (
        <li key={piece.name}>
          <Swatch piece={piece} />
          {piece.look.label} {figure(piece)}
        </li>
      ))}
    </ul>
  );
}

function Swatch({ piece }: { piece: Piece }) {
  const hatches = useHatches();
  return (
    <svg width="12" height="12" aria-hidden="true">
      {hatches.defs}
      <rect width="12" height="12" rx="2" fill={piece.look.colour} />
      {piece.look.hatch && <rect width="12" height="12" rx="2" fill={hatches.fill(piece.look.hatch)} />}
    </svg>
  );
}
