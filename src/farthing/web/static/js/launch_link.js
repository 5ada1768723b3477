// A link from a Dataverse: its signed address is taken out of the address bar and kept until the server has read it.

const KEY = "farthing.launch";

/** At the start: `/?callback=...` becomes the screen that says which file it is about. */
export function keepLaunch() {
  const callback = new URLSearchParams(location.search).get("callback");
  if (callback !== null) sessionStorage.setItem(KEY, callback);
  // After signing in elsewhere, the address comes back without it.
  const again = sessionStorage.getItem(KEY) !== null && ["", "#/"].includes(location.hash);
  if (callback !== null || again) history.replaceState(null, "", `${location.pathname}#/launch`);
}

/** The link that is kept, once: it is worth something for minutes, and then nothing. */
export function takeLaunch() {
  const callback = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  return callback;
}
