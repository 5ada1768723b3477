// Following a release until it ends: events while they come, asking every second when they do not.

import { useEffect, useState } from "../../vendor/preact.js";
import { address, get, post } from "../api.js";
import { arrived, unsent } from "./request_ids.js";

const PAUSE = 1000;
const ENDED = ["released", "forfeited", "refused", "failed"];
const path = (id) => `/releases/${encodeURIComponent(id)}`;

export const hasEnded = (release) => ENDED.includes(release.state);

/** Whether an error is the server's last word on a request, and not a fault on the way. */
const isVerdict = ({ status }) => status >= 400 && status < 500 && ![401, 403, 429].includes(status);

/** What the server knows of it; what was confirmed here and has not arrived is sent, under the same id. */
async function begun(id, signal) {
  const body = unsent(id);
  if (!body) return get(path(id), { signal });
  try {
    // The same request id twice is one release, so a reload at any moment is harmless.
    const release = await post("/releases", { ...body, wait: 0 }, { signal });
    arrived(id);
    return release;
  } catch (error) {
    if (!isVerdict(error)) throw error;
    arrived(id);
    return get(path(id), { signal }).catch(() => {
      throw error;
    });
  }
}

/** {release, error, retry} of one request id. */
export function useRelease(id) {
  const [state, setState] = useState({ release: null, error: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    let events = null;
    let timer = null;
    const show = (release) => {
      if (signal.aborted) return;
      setState({ release, error: null });
      if (hasEnded(release)) finish();
    };
    const finish = () => {
      events?.close();
      events = null;
      clearTimeout(timer);
    };
    const failed = (error) =>
      !signal.aborted && error.name !== "AbortError" && setState((before) => ({ ...before, error }));
    const look = () =>
      get(path(id), { signal }).then((release) => {
        show(release);
        return release;
      });
    const poll = () => {
      clearTimeout(timer);
      timer = setTimeout(
        () =>
          look().then(
            (release) => !hasEnded(release) && poll(),
            (error) => {
              failed(error);
              if (error.status === 0 || error.status >= 500) poll(); // the release goes on without us
            },
          ),
        PAUSE,
      );
    };
    const listen = () => {
      if (signal.aborted) return;
      events = new EventSource(address(`${path(id)}/events`));
      events.addEventListener("progress", (event) => {
        const news = JSON.parse(event.data);
        if (!signal.aborted)
          setState((before) => ({ error: null, release: before.release && { ...before.release, ...news } }));
      });
      events.addEventListener("done", () => {
        finish();
        look().then((release) => !hasEnded(release) && poll(), failed);
      });
      events.onerror = () => {
        events?.close();
        events = null;
        poll();
      };
    };
    begun(id, signal).then((release) => {
      show(release);
      if (!hasEnded(release)) listen();
    }, failed);
    return () => {
      stop.abort();
      finish();
    };
  }, [id, attempt]);
  return {
    ...state,
    retry: () => {
      setState({ release: null, error: null });
      setAttempt((n) => n + 1);
    },
  };
}
