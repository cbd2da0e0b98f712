import { useKeyBindings } from "../lib/keys";
import { Modal } from "./Modal";
import styles from "./Modal.module.css";

interface Props {
  shown: boolean;
  onClose: () => void;
}

/** The keys that count on this screen. */
export function KeyList({ shown, onClose }: Props) {
  const bindings = useKeyBindings();
  const groups = [...new Set(bindings.map((each) => each.group))];
  return (
    <Modal shown={shown} title="Keys" onClose={onClose}>
      {groups.map((group) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl className={styles.keys}>
            {bindings
              .filter((each) => each.group === group)
              .map((each) => [
                <dt key={`${each.keys} key`}>
                  <kbd>{each.keys}</kbd>
                </dt>,
                <dd key={`${each.keys} meaning`}>{each.does}</dd>,
              ])}
          </dl>
        </section>
      ))}
    </Modal>
  );
}
