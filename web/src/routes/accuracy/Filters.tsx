import type { Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { count } from "../../lib/format";
import { type AccuracyState, AXES, type Axis } from "../accuracy.search";
import styles from "./Accuracy.module.css";
import { keyOf, type Report } from "./runs";

interface Props {
  reports: readonly Schemas["AccuracySummary"][];
  report: Report | undefined;
  wanted: AccuracyState;
  onChange: (part: Partial<AccuracyState>) => void;
}

const NO_FILTER = { source: "", device: "", model: "" };

/** Which report, and which of its runs. */
export function Filters({ reports, report, wanted, onChange }: Props) {
  return (
    <div className={styles.filters}>
      <label>
        Report
        <select
          value={wanted.report}
          onChange={(event) => onChange({ report: event.target.value, ...NO_FILTER, fitted: false })}
        >
          {reports.every((each) => each.name !== wanted.report) && <option>{wanted.report}</option>}
          {reports.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name} ({count(each.num_rows)})
            </option>
          ))}
        </select>
      </label>
      {report && AXES.map((axis) => <AxisFilter key={axis} {...{ axis, report, wanted, onChange }} />)}
      {report && (report.num_fitted > 0 || wanted.fitted) && (
        <label>
          <input
            type="checkbox"
            checked={wanted.fitted}
            onChange={(event) => onChange({ fitted: event.target.checked })}
          />
          runs that chose constants
        </label>
      )}
      {AXES.some((axis) => wanted[axis] !== "") && (
        <Button onClick={() => onChange(NO_FILTER)}>Show all</Button>
      )}
    </div>
  );
}

interface AxisProps {
  axis: Axis;
  report: Report;
  wanted: AccuracyState;
  onChange: Props["onChange"];
}

function AxisFilter({ axis, report, wanted, onChange }: AxisProps) {
  const names = [...new Set(report.rows.map(keyOf(report, axis)))].sort();
  const value = wanted[axis];
  return (
    <label>
      {axis[0]?.toUpperCase() + axis.slice(1)}
      <select value={value} onChange={(event) => onChange({ [axis]: event.target.value })}>
        <option value="">all</option>
        {value && !names.includes(value) && <option>{value}</option>}
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
