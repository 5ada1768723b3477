// The request id of a release is made once, in the browser, and kept: a reload or a second click spends nothing more.

const KEY = "farthing.releases";

const read = () => {
  try {
    const requests = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    return requests && typeof requests === "object" ? requests : {};
  } catch {
    return {};
  }
};

const write = (all) => sessionStorage.setItem(KEY, JSON.stringify(all));

/** Letters that nobody else will draw. */
function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The request for this draft: the same one for the same draft, until `again` asks for a new one. */
export function requestFor(draft, { again = false } = {}) {
  const all = read();
  const asked = JSON.stringify(draft);
  const known = Object.entries(all).find(([, one]) => one.asked === asked);
  if (known && !again) return { id: known[0], sent: known[1].sent };
  const id = fresh();
  const recent = Object.entries(all)
    .filter(([, one]) => one.asked !== asked)
    .slice(-20);
  write({ ...Object.fromEntries(recent), [id]: { asked, sent: false } });
  return { id, sent: false };
}

/** Whether this draft was released in this tab. */
export const wasSent = (draft) => {
  const asked = JSON.stringify(draft);
  return Object.values(read()).some((one) => one.asked === asked && one.sent);
};

/**
 * The person has confirmed: from now on this id stands for this release, whatever happens to the page.
 * `limit` is the epsilon that was confirmed; what costs more by the time it runs is refused. `title` is what people
 * will find it by, and no part of what is asked.
 */
export function confirm(id, limit, title = null) {
  const all = read();
  if (all[id]) write({ ...all, [id]: { ...all[id], limit: all[id].limit ?? limit, title, sent: true } });
}

/** What was confirmed under this id in this tab and has not reached the server, as far as we know; or null. */
export function unsent(id) {
  const one = read()[id];
  return one?.sent && !one.arrived
    ? { draft: named(JSON.parse(one.asked), one.title), request_id: id, confirmed_epsilon: one.limit }
    : null;
}

const named = (draft, title) => (title ? { ...draft, title } : draft);

/** The server has it. From now on it is only looked at: what was refused is not tried again by a reload. */
export function arrived(id) {
  const all = read();
  if (all[id]) write({ ...all, [id]: { ...all[id], arrived: true } });
}

/** A refused request spent nothing: the next attempt gets an id of its own. */
export function forget(id) {
  const { [id]: _gone, ...rest } = read();
  write(rest);
}
