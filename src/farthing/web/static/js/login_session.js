// Who is signed in. `undefined` while we do not know, `null` when nobody is.

import { useEffect, useState } from "../vendor/preact.js";
import { get, post, useCsrf } from "./api.js";

let me;
let thrownOut = false; // by the server, in the middle of something
const listeners = new Set();

function tell(next) {
  me = next;
  if (next) thrownOut = false;
  useCsrf(next?.csrf ?? null);
  for (const listener of listeners) listener(next);
}

/** Did a session end by itself? Then the sign-in screen says why it is there. */
export const wasThrownOut = () => thrownOut;

/** Ask the server who we are; nobody is an answer, too. */
export async function loadMe() {
  try {
    tell(await get("/me", { stay: true }));
  } catch (error) {
    if (error.status !== 401) throw error;
    tell(null);
  }
  return me;
}

export async function signIn(user, password) {
  await post("/login", { user, password }, { stay: true });
  return loadMe();
}

export async function signOut() {
  await post("/logout", {}, { stay: true }).catch((error) => {
    if (error.status !== 401) throw error;
  });
  tell(null);
}

/** The person signed in, kept up to date. */
export function useMe() {
  const [value, setValue] = useState(me);
  useEffect(() => {
    listeners.add(setValue);
    setValue(me);
    return () => listeners.delete(setValue);
  }, []);
  return value;
}

/** May this person do it? scope: read, plan, spend or manage. */
export function may(person, scope) {
  return Boolean(person?.scopes?.includes(scope));
}

window.addEventListener("farthing:signed-out", () => {
  if (!me) return;
  thrownOut = true;
  tell(null);
});
