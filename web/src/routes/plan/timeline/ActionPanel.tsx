import type { ReactNode } from "react";
import { at, rankOf, type StepColumns } from "../../../charts/step/columns";
import { usersOf, waitingOf } from "../../../charts/step/waiting";
import { Button } from "../../../components/Button";
import { count } from "../../../lib/format";
import { actionName, actionSentence, exactly, waitingSentence } from "./describe";
import styles from "./Timeline.module.css";
import type { Selection } from "./useSelection";
import type { Moves } from "./useTimelineKeys";

interface Props {
  step: StepColumns;
  selection: Selection;
  moves: Moves;
}

/** The selected action: when exactly, what it waited for, who waits for it. */
export function ActionPanel({ step, selection, moves }: Props) {
  const place = selection.action;
  const said = place === undefined ? "" : actionSentence(step, place, waitingOf(step, place));
  return (
    <aside className={styles.panel} aria-label="Selected action">
      <div role="status" className="visually-hidden">
        {said}
      </div>
      {place === undefined ? (
        <NothingSelected />
      ) : (
        <Action step={step} place={place} selection={selection} moves={moves} />
      )}
    </aside>
  );
}

function NothingSelected() {
  return (
    <>
      <h3>No action selected</h3>
      <p>
        Press an action, or walk over them with <kbd>,</kbd> and <kbd>.</kbd>, to see its exact times and what
        it waited for.
      </p>
      <p>
        Drag pans, Shift and drag zooms in on what is marked. The wheel zooms with Ctrl, or once the chart has
        the focus. <kbd>?</kbd> lists all keys.
      </p>
    </>
  );
}

function Action({ step, place, selection, moves }: Props & { place: number }) {
  const waiting = waitingOf(step, place);
  const microbatch = at(step.microbatch, place);
  const [start, end] = [at(step.start_ns, place), at(step.end_ns, place)];
  const pinned = selection.microbatch === microbatch;
  const users = usersOf(step, place);
  return (
    <>
      <div className={styles.panelHead}>
        <h3>{actionName(step, place)}</h3>
        <Button look="quiet" onClick={() => selection.selectAction(undefined)}>
          Clear
        </Button>
      </div>
      <dl className={styles.facts}>
        <Fact name="Rank">{rankOf(step, place)}</Fact>
        <Fact name="Begins">{exactly(start)}</Fact>
        <Fact name="Ends">{exactly(end)}</Fact>
        <Fact name="Takes">{exactly(end - start)}</Fact>
        <Fact name="Idle before">{exactly(waiting.idle_ns)}</Fact>
        <Fact name="On the critical path">{at(step.on_critical, place) ? "yes" : "no"}</Fact>
      </dl>
      <p>{waitingSentence(step, waiting)}</p>
      <ul className={styles.links}>
        {waiting.source !== undefined && (
          <ActionLink step={step} place={waiting.source} moves={moves} word="Needs" />
        )}
        {users.map((each) => (
          <ActionLink key={each} step={step} place={each} moves={moves} word="Feeds" />
        ))}
      </ul>
      <Button
        aria-pressed={pinned}
        className={styles.toggle}
        onClick={() => selection.pinMicrobatch(pinned ? -1 : microbatch)}
      >
        Highlight micro-batch {count(microbatch)}
      </Button>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface LinkProps {
  step: StepColumns;
  place: number;
  moves: Moves;
  word: string;
}

function ActionLink({ step, place, moves, word }: LinkProps) {
  return (
    <li>
      {word}{" "}
      <button type="button" className={styles.link} onClick={() => moves.walkTo(place)}>
        {actionName(step, place)}, rank {rankOf(step, place)}
      </button>
    </li>
  );
}
