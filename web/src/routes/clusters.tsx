import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { PageHead } from "../components/PageHead";
import { useKeys } from "../lib/keys";
import { ClusterShelf } from "./clusters/ClusterShelf";
import styles from "./clusters/Clusters.module.css";
import { DeviceShelf } from "./clusters/DeviceShelf";
import { ProfileShelf } from "./clusters/ProfileShelf";
import { type ClustersSearch, readClustersSearch, SHELVES } from "./clusters.search";

const NAMES = { clusters: "Clusters", devices: "Devices", profiles: "Profiles" } as const;
const SHELF = { clusters: ClusterShelf, devices: DeviceShelf, profiles: ProfileShelf } as const;

/** What plans can run on, where its numbers come from, and what is measured of it. */
export function Clusters() {
  const search = readClustersSearch.full(useSearch({ from: "/clusters" }));
  const navigate = useNavigate();
  const write = (part: Partial<ClustersSearch>) =>
    void navigate({ to: "/clusters", search: (before) => ({ ...before, ...part }), resetScroll: false });
  useKeys(
    SHELVES.map((show, index) => ({
      keys: String(index + 1),
      does: NAMES[show],
      group: "Clusters & profiles",
      run: () => write({ show }),
    })),
  );
  const Shown = SHELF[search.show];
  return (
    <>
      <PageHead title="Clusters & profiles">
        <nav aria-label="Shelves">
          <ul className={styles.shelves}>
            {SHELVES.map((show) => (
              <li key={show}>
                <Link
                  to="/clusters"
                  search={(before) => ({ ...before, show: show === "clusters" ? undefined : show })}
                  aria-current={show === search.show ? "page" : undefined}
                  data-shown={show === search.show}
                >
                  {NAMES[show]}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      </PageHead>
      <Shown search={search} write={write} />
    </>
  );
}
