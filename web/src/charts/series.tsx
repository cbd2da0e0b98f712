/** How is one series told from another?  By colour, dash and mark at once, in the order in which they are named. */

export interface SeriesLook {
  readonly colour: string;
  readonly dash: string | undefined;
}

const DASHES = [undefined, "7 3", "2 3", "9 3 2 3", "5 5", "1 2"] as const;
/** Paths around 0 0, about 10 px wide. */
const SHAPES = [
  "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
  "M-4.5-4.5h9v9h-9z",
  "M0-5.5 5.5 4.5h-11z",
  "M0-6 6 0 0 6-6 0z",
  "M0 5.5 5.5-4.5h-11z",
  "M-2-5h4v3h3v4h-3v3h-4v-3h-3v-4h3z",
] as const;

export function seriesLook(series: number): SeriesLook {
  return { colour: `var(--series-${(series % 8) + 1})`, dash: DASHES[series % DASHES.length] };
}

interface MarkerProps {
  series: number;
  x: number;
  y: number;
  hollow?: boolean;
  scale?: number;
}

export function Marker({ series, x, y, hollow, scale = 1 }: MarkerProps) {
  const { colour } = seriesLook(series);
  return (
    <path
      d={SHAPES[series % SHAPES.length]}
      transform={`translate(${x} ${y}) scale(${scale})`}
      fill={hollow ? "var(--paper)" : colour}
      stroke={colour}
      strokeWidth="1.5"
    />
  );
}

/** The line and the mark of a series, for a legend. */
export function SeriesSwatch({ series }: { series: number }) {
  const { colour, dash } = seriesLook(series);
  return (
    <svg width="30" height="14" aria-hidden="true">
      <path d="M0 7H30" stroke={colour} strokeWidth="2" strokeDasharray={dash} />
      <Marker series={series} x={15} y={7} />
    </svg>
  );
}
