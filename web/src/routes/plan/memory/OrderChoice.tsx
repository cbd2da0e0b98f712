import styles from "./Memory.module.css";
import type { StageOrder } from "./stages";

const ORDERS: readonly (readonly [StageOrder, string])[] = [
  ["stage", "By stage"],
  ["fullest", "Fullest first"],
];

interface Props {
  order: StageOrder;
  onOrder: (order: StageOrder) => void;
}

/** In which order do the stages stand? */
export function OrderChoice({ order, onOrder }: Props) {
  return (
    <fieldset className={styles.order}>
      <legend className="visually-hidden">Order of the stages</legend>
      {ORDERS.map(([value, name]) => (
        <label key={value}>
          <input type="radio" name="order" checked={order === value} onChange={() => onOrder(value)} /> {name}
        </label>
      ))}
    </fieldset>
  );
}
