// The state of the planner: the draft, the newest answer to it, and what was refused.

import { useCallback, useEffect, useRef, useState } from "../../vendor/preact.js";
import { forServer } from "./draft.js";
import { EditHistory } from "./edit_history.js";
import { Replanner } from "./replanner.js";

/**
 * `change(make, cause)` makes a new draft out of the present one and plans it.
 *
 * A cause says what a refusal is about: {kind: "make", key, tried} and {kind: "add"} carry `undo`, which takes back what
 * cannot be, so that everything else goes on; all others leave the draft as the person wants it. Changes of one `edit`
 * that follow each other quickly are one step of undo. `before` has the errors by key from before the newest step.
 */
export function usePlanning(initial, price) {
  const [draft, setDraft] = useState(initial);
  const [answer, setAnswer] = useState(null); // {view, keys, draft}
  const [refusal, setRefusal] = useState(null); // {error, cause}
  const [status, setStatus] = useState("idle");
  const [before, setBefore] = useState({});
  const latest = useRef(initial);
  const newest = useRef(null); // the answer on the screen
  newest.current = answer;
  const history = useRef(null);
  history.current ??= new EditHistory();
  const replanner = useRef(null);

  const plan = useCallback((next, cause, options) => {
    latest.current = next;
    setDraft(next);
    if (next.rows.length) replanner.current?.want({ draft: next, cause }, options);
    else {
      replanner.current?.forget();
      setAnswer(null);
      if (cause?.kind !== "undo") setRefusal(null); // why the only statistic was taken back stays in sight
    }
  }, []);

  useEffect(() => {
    replanner.current = new Replanner({
      price: ({ draft: wanted }, options) => price(forServer(wanted), options),
      paint: (view, asked) => {
        setAnswer({ view, keys: asked.draft.draft.rows.map((row) => row.key), draft: asked.draft.draft });
        setRefusal((before) => (before && before.number >= asked.number ? before : before?.cause.undo ? before : null));
      },
      fail: (error, asked) => {
        const { cause } = asked.draft;
        setRefusal({ error, cause, number: asked.number });
        if (cause.undo) {
          history.current.refused();
          plan(cause.undo(latest.current), { kind: "undo" });
        }
      },
      status: setStatus,
    });
    if (latest.current.rows.length) replanner.current.want({ draft: latest.current, cause: { kind: "open" } });
    return () => replanner.current.stop();
  }, []);

  const change = useCallback((make, cause = { kind: "change" }) => {
    // A refusal stays in sight until the person does something else.
    if (cause.kind !== "undo") setRefusal((before) => (before?.cause.undo ? null : before));
    if (history.current.note(latest.current, cause.edit)) setBefore(errorsOf(newest.current));
    plan(make(latest.current), cause);
  }, []);
  const step = useCallback((draft) => {
    if (draft === null) return;
    setRefusal(null);
    setBefore(errorsOf(newest.current));
    plan(draft, { kind: "share" });
  }, []);
  const undo = useCallback(() => step(history.current.back(latest.current)), []);
  const redo = useCallback(() => step(history.current.forth(latest.current)), []);
  const again = useCallback(() => plan(latest.current, { kind: "again" }), []);
  const replace = useCallback((next) => {
    setRefusal(null);
    setBefore({});
    history.current.note(latest.current);
    plan(next, { kind: "open" });
  }, []);
  const { past, future } = history.current;
  const steps = { undo: past.length ? undo : null, redo: future.length ? redo : null };
  return { draft, answer, before, refusal, status, change, steps, again, replace, setRefusal };
}

/** The errors on the screen, by key. */
function errorsOf(answer) {
  return Object.fromEntries((answer?.keys ?? []).map((key, at) => [key, answer.view.statistics[at]?.error]));
}
