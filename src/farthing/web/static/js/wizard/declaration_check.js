// What the server says about a declaration that is not made yet: a sentence for each column, and what is wrong.

import { useEffect, useState } from "../../vendor/preact.js";
import { post } from "../api.js";

/** `{data, error, again}` for a body; asked `wait` milliseconds after it last changed, and the last answer stays meanwhile. */
export function useCheck(body, wait) {
  const text = JSON.stringify(body);
  const [state, setState] = useState({ text: null, data: null, error: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      post("/datasets/check", body, { signal: stop.signal }).then(
        (data) => setState({ text, data, error: null }),
        (error) => error.name !== "AbortError" && setState({ text, data: null, error }),
      );
    }, wait);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, attempt]);
  return { data: state.data, error: state.error, fresh: state.text === text, again: () => setAttempt(attempt + 1) };
}

/** The server's sentence about a column; it begins with the column's name, so no capital is put there. */
export function sentenceAbout(checked, name) {
  const sentence = checked?.columns.find((one) => one.name === name)?.sentence;
  return sentence ? sentence + "." : null;
}

/** What is wrong with a column. */
export function problemWith(checked, name) {
  return checked?.problems.find((one) => one.where === "columns." + name)?.message ?? null;
}
