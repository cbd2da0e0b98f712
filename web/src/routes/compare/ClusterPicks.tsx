import type { Finding } from "../../api/problem";
import { SeriesSwatch } from "../../charts/series";
import { Button } from "../../components/Button";
import { FindingList } from "../../components/Field";
import type { CompareSearch } from "../compare.search";
import styles from "./Compare.module.css";
import { clustersOf, pricesOf, withPrice } from "./questions";

interface Props {
  search: CompareSearch;
  write: (part: Partial<CompareSearch>) => void;
  names: readonly string[];
  most: number;
  findings: readonly Finding[];
}

/** The clusters that are compared, each with its line in the pictures and its price. */
export function ClusterPicks({ search, write, names, most, findings }: Props) {
  const chosen = clustersOf(search);
  const prices = pricesOf(search);
  const rest = names.filter((each) => !chosen.includes(each));
  return (
    <fieldset className={styles.clusters}>
      <legend>Clusters</legend>
      <ul>
        {chosen.map((name, series) => (
          <li key={name}>
            <SeriesSwatch series={series} />
            <b>{name}</b>
            <label>
              $
              <input
                value={prices[name] ?? ""}
                inputMode="decimal"
                size={5}
                placeholder="price"
                aria-label={`Price of a device-hour of ${name}, $`}
                onChange={(event) => write({ prices: withPrice(search, name, event.target.value) })}
              />
              a device-hour
            </label>
            <Button
              look="quiet"
              aria-label={`Leave out ${name}`}
              disabled={chosen.length === 1}
              onClick={() =>
                write({
                  clusters: chosen.filter((each) => each !== name),
                  prices: withPrice(search, name, ""),
                })
              }
            >
              ×
            </Button>
          </li>
        ))}
        <li>
          <select
            value=""
            aria-label="Add a cluster"
            disabled={chosen.length >= most}
            onChange={(event) => write({ clusters: [...chosen, event.target.value] })}
          >
            <option value="">Add a cluster…</option>
            {rest.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </li>
      </ul>
      <FindingList findings={findings} />
    </fieldset>
  );
}
