// Questions that follow a moving hand: one at a time, the newest wins, and the last picture stays while the next is made.

import { useEffect, useRef, useState } from "../../vendor/preact.js";

/**
 * The answer of `load(wanted)` for the newest `wanted`; {value, of, busy, error}.
 * `pause` is how long the hand must rest in milliseconds. An answer that was overtaken is shown only if it is newer than
 * what is shown, so that the picture moves while the hand does, and never backwards.
 */
export function useNewest(load, wanted, pause = 30) {
  const [picture, show] = useState({ value: null, of: null, busy: true, error: null });
  const work = useRef({ number: 0, flying: false, timer: null, gone: false, next: null });
  const key = wanted === null ? null : JSON.stringify(wanted);

  useEffect(() => {
    const mine = work.current;
    mine.gone = false;
    return () => {
      mine.gone = true;
      clearTimeout(mine.timer);
    };
  }, []);

  useEffect(() => {
    if (key === null) return;
    const mine = work.current;
    mine.number += 1;
    mine.next = { number: mine.number, wanted };
    show((before) => ({ ...before, busy: true }));
    clearTimeout(mine.timer);
    mine.timer = setTimeout(() => fly(mine, load, show), pause);
  }, [key]);

  const again = () => {
    work.current.next = { number: work.current.number, wanted };
    fly(work.current, load, show);
  };
  return { ...picture, again };
}

async function fly(mine, load, show) {
  if (mine.flying || mine.gone || !mine.next) return;
  const { number, wanted } = mine.next;
  mine.next = null;
  mine.flying = true;
  let result;
  try {
    result = { value: await load(wanted), error: null };
  } catch (error) {
    result = { error };
  }
  mine.flying = false;
  if (mine.gone) return;
  const newest = number === mine.number;
  if (newest || !result.error)
    show((before) => ({ ...before, ...result, of: result.error ? before.of : wanted, busy: !newest }));
  if (mine.next) fly(mine, load, show);
}

/** `load` that remembers its last answers: going back to where the hand was takes no time. For what never changes only. */
export function remembered(load, most = 300) {
  const known = new Map();
  return async (wanted) => {
    const key = JSON.stringify(wanted);
    if (known.has(key)) return known.get(key);
    const answer = await load(wanted);
    known.set(key, answer);
    if (known.size > most) known.delete(known.keys().next().value);
    return answer;
  };
}
