import { type FormEvent, useState } from "react";
import type { View } from "../../../charts/mesh/viewport";
import { Button } from "../../../components/Button";
import { count, times } from "../../../lib/format";
import styles from "./Mesh.module.css";

interface Props {
  ranks: number;
  rank: number | undefined;
  onFind: (rank: number) => void;
  zoom: number;
  glide: (view: View) => void;
  steps: { nearer: View; farther: View; whole: View };
}

/** Find a rank by its number; zoom. */
export function MapTools({ ranks, rank, onFind, zoom, glide, steps }: Props) {
  const [typed, setTyped] = useState<string>();
  const [wrong, setWrong] = useState("");
  const find = (event: FormEvent) => {
    event.preventDefault();
    const text = (typed ?? "").trim().replaceAll(",", "");
    const wanted = /^\d+$/.test(text) ? Number(text) : -1;
    if (wanted < 0 || wanted >= ranks) {
      setWrong(`There is no rank "${typed ?? ""}": they go from 0 to ${count(ranks - 1)}.`);
      return;
    }
    setWrong("");
    setTyped(undefined);
    onFind(wanted);
  };
  return (
    <div className={styles.tools}>
      <form onSubmit={find} className={styles.find} noValidate>
        <label htmlFor="find-rank">Rank</label>
        <input
          id="find-rank"
          inputMode="numeric"
          autoComplete="off"
          value={typed ?? rank ?? ""}
          onChange={(event) => setTyped(event.target.value)}
          aria-invalid={wrong !== "" || undefined}
          aria-describedby={wrong ? "find-rank-wrong" : undefined}
        />
        <Button type="submit">Find</Button>
        {wrong && (
          <span id="find-rank-wrong" role="alert" className={styles.wrong}>
            {wrong}
          </span>
        )}
      </form>
      {/* biome-ignore lint/a11y/useSemanticElements: buttons that belong together, but no fields of a form */}
      <div className={styles.zoom} role="group" aria-label="Zoom">
        <output aria-label="Zoom now">{times(zoom)}</output>
        <Button aria-label="Zoom out" onClick={() => glide(steps.farther)}>
          −
        </Button>
        <Button aria-label="Zoom in" onClick={() => glide(steps.nearer)}>
          +
        </Button>
        <Button onClick={() => glide(steps.whole)}>Fit</Button>
      </div>
    </div>
  );
}
