import type { FitsView } from "../../api/queries/hardware";
import { CollectivesFigure } from "./CollectivesFigure";
import { CoverageFigure } from "./CoverageFigure";
import { FitTable } from "./FitTable";

/** What is measured, drawn. */
export function FitFigures({ fits }: { fits: FitsView }) {
  return (
    <>
      {fits.tables.length > 0 && <CoverageFigure tables={fits.tables} />}
      {fits.tables.length > 0 && <FitTable tables={fits.tables} />}
      {fits.collectives.length > 0 && <CollectivesFigure collectives={fits.collectives} />}
    </>
  );
}
