import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { ApiProblem } from "../../api/problem";
import { fitsQuery } from "../../api/queries/hardware";
import { CopyLine } from "../../components/CopyLine";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { count, plural, shortId } from "../../lib/format";
import styles from "./Clusters.module.css";

/** Scales and shapes are loaded when there is something to draw. */
const FitFigures = lazy(async () => ({ default: (await import("./FitFigures")).FitFigures }));

interface Props {
  kind: "device" | "profile";
  name: string;
}

/** What is measured, how well the fits say it, and what is missing with the command that measures it. */
export function FitsReport({ kind, name }: Props) {
  const found = useQuery(fitsQuery(kind, name));
  if (found.error instanceof ApiProblem && found.error.problem.slug === "profile-missing")
    return <NothingMeasured problem={found.error} device={kind === "device" ? name : undefined} />;
  if (found.error) return <ProblemNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading label="measurements" height={260} lines={5} />;
  const fits = found.data;
  return (
    <div className={styles.report}>
      <p>
        {count(fits.num_points)} measured points of {fits.device}, profile{" "}
        <code>{shortId(fits.profile_id)}</code>.
      </p>
      <Suspense fallback={<Loading label="figures" height={420} lines={5} />}>
        <FitFigures fits={fits} />
      </Suspense>
      {fits.missing.length > 0 && (
        <section className={styles.missing}>
          <h3>{plural(fits.missing.length, "thing is", "things are")} not measured</h3>
          <ul>
            {fits.missing.map((each) => (
              <li key={each.code}>
                <p>{each.what}</p>
                <CopyLine text={each.command} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function NothingMeasured({ problem, device }: { problem: ApiProblem; device: string | undefined }) {
  const hint = problem.problem.errors?.[0]?.hint;
  return (
    <Empty title="Nothing is measured of it on this server">
      <p>Plans use the datasheet{hint && `; ${hint.replaceAll("`", "")}`}.</p>
      <CopyLine text="meshwright profile measure" />
      {device && (
        <p>
          <Link to="/clusters" search={{ show: "profiles", logs: true, measured: device }}>
            Import logs of it
          </Link>
        </p>
      )}
    </Empty>
  );
}
