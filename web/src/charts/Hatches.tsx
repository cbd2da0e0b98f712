import { useId } from "react";
import { HATCHES, type HatchName } from "./terms";

/** Strokes of a tile of 6 by 6. */
export const HATCH_PATHS: Readonly<Record<HatchName, string>> = {
  rising: "M-1 7 7-1M-1 1 1-1M5 7 7 5",
  falling: "M-1-1 7 7M5-1 7 1M-1 5 1 7",
  dots: "M1.5 1.5h1.5v1.5h-1.5zM4.5 4.5h1.5v1.5h-1.5z",
  cross: "M-1 7 7-1M-1-1 7 7",
  level: "M0 1.5h6M0 4.5h6",
};

/** A prefix for the patterns of one drawing: `const hatches = useHatches()`. */
export function useHatches(): { defs: React.ReactNode; fill: (name: HatchName) => string } {
  const id = useId();
  const defs = (
    <defs>
      {HATCHES.map((name) => (
        <pattern key={name} id={`${id}-${name}`} width="6" height="6" patternUnits="userSpaceOnUse">
          <path
            d={HATCH_PATHS[name]}
            fill="none"
            stroke="var(--paper)"
            strokeWidth="1.3"
            strokeOpacity="0.75"
          />
        </pattern>
      ))}
    </defs>
  );
  return { defs, fill: (name) => `url(#${id}-${name})` };
}
