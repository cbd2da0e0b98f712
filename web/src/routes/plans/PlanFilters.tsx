import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { backendsQuery, clustersQuery, modelsQuery } from "../../api/queries/catalogue";
import { Button } from "../../components/Button";
import { readPlansSearch } from "../plans.search";
import styles from "./Plans.module.css";

/** Which plans are shown; and the way to one whose label or id is known. */
export function PlanFilters() {
  const wanted = readPlansSearch.full(useSearch({ from: "/plans/" }));
  const navigate = useNavigate();
  const { data: models = [] } = useQuery(modelsQuery);
  const { data: clusters = [] } = useQuery(clustersQuery);
  const { data: backends = [] } = useQuery(backendsQuery);
  const filter = (part: Partial<typeof wanted>) =>
    void navigate({ to: "/plans", search: readPlansSearch({ ...wanted, ...part, after: "" }) });
  return (
    <div className={styles.filters}>
      <NameFilter label="Model" value={wanted.model} names={models} onChange={(model) => filter({ model })} />
      <NameFilter
        label="Cluster"
        value={wanted.cluster}
        names={clusters}
        onChange={(cluster) => filter({ cluster })}
      />
      <NameFilter
        label="Back-end"
        value={wanted.backend}
        names={backends}
        onChange={(backend) => filter({ backend })}
      />
      {wanted.problem && <Button onClick={() => filter({ problem: "" })}>Show other questions too</Button>}
      <OpenByName />
    </div>
  );
}

interface NameProps {
  label: string;
  value: string;
  names: readonly { name: string }[];
  onChange: (value: string) => void;
}

function NameFilter({ label, value, names, onChange }: NameProps) {
  const id = useId();
  return (
    <div className={styles.filter}>
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">all</option>
        {value && !names.some((each) => each.name === value) && <option value={value}>{value}</option>}
        {names.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
    </div>
  );
}

function OpenByName() {
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ to: "/plans/$planId", params: { planId: name.trim() } });
  };
  return (
    <form onSubmit={submit} className={styles.filter}>
      <label htmlFor={id}>Label or id</label>
      <input
        id={id}
        type="search"
        spellCheck={false}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" disabled={name.trim() === ""}>
        Open
      </Button>
    </form>
  );
}
