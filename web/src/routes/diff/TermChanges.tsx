import type { TermChange } from "../../api/queries/variants";
import { ChangeBars } from "../../charts/ChangeBars";
import type { Look } from "../../charts/terms";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { useWidth } from "../../lib/size";

interface Props {
  title: string;
  terms: readonly TermChange[];
  a: string;
  b: string;
  unit: (value: number) => string;
  change: (value: number) => string;
  look: (name: string) => Look;
}

/** What each part pays or saves from a to b: bars, and the figures of both sides behind them. */
export function TermChanges({ title, terms, a, b, unit, change, look }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  // The sum of bytes is a row of the API's table; it would dwarf its own parts as a bar.
  const parts = terms.filter((each) => each.term !== "total");
  const changed = parts.filter((each) => each.change !== 0);
  const [largest] = [...changed].sort((x, y) => Math.abs(y.change) - Math.abs(x.change));
  const total =
    terms.find((each) => each.term === "total")?.change ?? parts.reduce((sum, each) => sum + each.change, 0);
  const sentence = largest
    ? `From ${a} to ${b}: ${change(total)} in all; the largest change is ${look(largest.term).label.toLowerCase()}, ${change(largest.change)}.`
    : `Nothing changes from ${a} to ${b}.`;
  return (
    <ChartFigure
      title={title}
      sentence={sentence}
      table={() => (
        <DataTable
          caption={title}
          captionHidden
          columns={[
            {
              name: "part",
              title: "Part",
              cell: (row) => (row.term === "total" ? "Total" : look(row.term).label),
            },
            { name: "a", title: a, number: true, cell: (row) => unit(row.a) },
            { name: "b", title: b, number: true, cell: (row) => unit(row.b) },
            { name: "change", title: "Change", number: true, cell: (row) => change(row.change) },
          ]}
          rows={terms.filter((each) => each.a !== 0 || each.b !== 0)}
          rowKey={(row) => row.term}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && changed.length > 0 && (
          <ChangeBars
            changes={changed.map((each) => ({ name: each.term, value: each.change }))}
            look={look}
            figure={change}
            width={width}
            sentence={sentence}
          />
        )}
      </div>
    </ChartFigure>
  );
}
