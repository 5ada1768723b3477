// The state of the planner: the draft, the newest answer to it, and what was refused.

import { useCallback, useEffect, useRef, useState } from "../../vendor/preact.js";
import { forServer } from "./draft.js";
import { Replanner } from "./replanner.js";

/**
 * `change(make, cause)` makes a new draft out of the present one and plans it.
 *
 * A cause says what a refusal is about: {kind: "make", key, tried} and {kind: "add"} carry `undo`, which takes back what
 * cannot be, so that everything else goes on; all others leave the draft as the person wants it.
 */
export function usePlanning(initial, price) {
  const [draft, setDraft] = useState(initial);
  const [answer, setAnswer] = useState(null); // {view, keys, draft}
  const [refusal, setRefusal] = useState(null); // {error, cause}
  const [status, setStatus] = useState("idle");
  const latest = useRef(initial);
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
        if (cause.undo) plan(cause.undo(latest.current), { kind: "undo" });
      },
      status: setStatus,
    });
    if (latest.current.rows.length) replanner.current.want({ draft: latest.current, cause: { kind: "open" } });
    return () => replanner.current.stop();
  }, []);

  const change = useCallback((make, cause = { kind: "change" }) => {
    // A refusal stays in sight until the person does something else.
    if (cause.kind !== "undo") setRefusal((before) => (before?.cause.undo ? null : before));
    plan(make(latest.current), cause);
  }, []);
  const again = useCallback(() => plan(latest.current, { kind: "again" }), []);
  const replace = useCallback((next) => {
    setRefusal(null);
    plan(next, { kind: "open" });
  }, []);
  return { draft, answer, refusal, status, change, again, replace, setRefusal };
}
