import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { type ProfileRow, profilesQuery } from "../../api/queries/hardware";
import { Button } from "../../components/Button";
import type { Column } from "../../components/DataTable";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { moment } from "../../lib/format";
import styles from "./Clusters.module.css";
import { FitsReport } from "./FitsReport";
import { Shelf, type ShelfProps } from "./Shelf";

const COLUMNS: readonly Column<ProfileRow>[] = [
  { name: "version", title: "Version", number: true, cell: (row) => row.version },
  { name: "made", title: "Named", cell: (row) => moment(row.created_at) },
];

/** Few who look at a shelf import: its code comes when it is asked for. */
const ImportForm = lazy(async () => ({ default: (await import("./ImportForm")).ImportForm }));

/** Named measurements, and the way in for more. */
export function ProfileShelf(props: ShelfProps) {
  const { search, write } = props;
  return (
    <div className={styles.report}>
      {search.logs ? (
        <Suspense fallback={<Loading label="the form" height={300} lines={4} />}>
          <ImportForm {...props} />
        </Suspense>
      ) : (
        <div className={styles.buttons}>
          <Button onClick={() => write({ logs: true })}>Import logs</Button>
        </div>
      )}
      <NamedProfiles {...props} />
    </div>
  );
}

/** A profile can also be looked at by its id: the address says which. */
function NamedProfiles({ search, write }: ShelfProps) {
  const listed = useQuery(profilesQuery);
  if (listed.error) return <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />;
  if (!listed.data) return <Loading label="profiles" height={300} lines={6} />;
  if (listed.data.length === 0 && !search.profile)
    return (
      <Empty title="No profile has a name here">
        <p>
          What is measured of a device is shown with the device. <code>PUT /v1/profiles/NAME</code> names a
          profile, so that questions can lean on exactly that one.
        </p>
      </Empty>
    );
  return (
    <Shelf
      noun="profile"
      caption="Named profiles"
      rows={listed.data}
      columns={COLUMNS}
      chosen={search.profile}
      onChoose={(profile) => write({ profile })}
    >
      <h2>{search.profile}</h2>
      <FitsReport kind="profile" name={search.profile} />
    </Shelf>
  );
}
