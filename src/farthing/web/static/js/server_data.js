// Loading something for a screen: what is there, what went wrong, and how to try again.

import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { get } from "./api.js";

/**
 * `const { data, error, loading, reload, setData } = useLoaded('/datasets')`.
 * A path of null loads nothing. While it is loading again the last data stay; a slow answer never overwrites a newer one.
 */
export function useLoaded(path) {
  const [state, setState] = useState({ path: null, data: null, error: null, loading: path !== null });
  const newest = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++newest.current;
    if (path === null) {
      setState({ path, data: null, error: null, loading: false });
      return;
    }
    setState((old) => ({ path, data: old.path === path ? old.data : null, error: null, loading: true }));
    let next;
    try {
      next = { path, data: await get(path), error: null, loading: false };
    } catch (error) {
      next = { path, data: null, error, loading: false };
    }
    if (mine === newest.current) setState(next);
  }, [path]);
  useEffect(() => {
    reload();
    return () => {
      newest.current += 1;
    };
  }, [reload]);
  const setData = useCallback((data) => setState({ path, data, error: null, loading: false }), [path]);
  const fresh = state.path === path ? state : { data: null, error: null, loading: path !== null };
  return { data: fresh.data, error: fresh.error, loading: fresh.loading, reload, setData };
}

/** `const [run, busy, error, clear] = useAction(async () => ...)`: a button's work; a second press while it runs does nothing. */
export function useAction(work) {
  const [state, setState] = useState({ busy: false, error: null });
  const running = useRef(false);
  const run = async (...given) => {
    if (running.current) return undefined;
    running.current = true;
    setState({ busy: true, error: null });
    try {
      const result = await work(...given);
      setState({ busy: false, error: null });
      return result;
    } catch (error) {
      setState({ busy: false, error });
      return undefined;
    } finally {
      running.current = false;
    }
  };
  return [run, state.busy, state.error, () => setState({ busy: false, error: null })];
}
