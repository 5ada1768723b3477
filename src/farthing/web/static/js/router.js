// Hash routes: `#/plan/census/17` is the screen "plan" with {dataset: 'census', id: '17'}.
import { useEffect, useState } from "../vendor/preact.js";

/** Route -> [file in screens/, names of what follows]. */
export const ROUTES = {
  "": ["home", []],
  login: ["login", []],
  wizard: ["wizard", []],
  dataset: ["dataset", ["dataset"]],
  plan: ["planner", ["dataset", "id"]],
  release: ["release", ["id"]],
  ask: ["ask", ["dataset", "id"]],
  series: ["series", ["dataset", "id"]],
  synthetic: ["synthetic", ["dataset", "id"]],
  requests: ["requests", ["id"]],
  ledger: ["ledger", ["dataset"]],
  learn: ["learn", []],
  people: ["people", []],
  launch: ["launch", []],
};

/** {route, screen, params} of a hash; screen is null for an address that does not exist. */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [route, ...rest] = path
    .split("/")
    .filter((part, at) => at === 0 || part !== "")
    .map(decoded);
  const [screen, names] = Object.hasOwn(ROUTES, route) ? ROUTES[route] : [null, []];
  const params = Object.fromEntries(names.map((name, at) => [name, rest[at] ?? null]));
  if (screen === null || rest.length > names.length) return { route, screen: null, params: {}, search: {} };
  return { route, screen, params, search: Object.fromEntries(new URLSearchParams(search)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a screen: `link('plan', 'census', 17)` is `#/plan/census/17`. */
export function link(route = "", ...parts) {
  const present = parts.filter((part) => part !== null && part !== undefined);
  return "#/" + [route, ...present.map(encodeURIComponent)].join("/");
}

export function go(hash, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = hash;
  }
}

export function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}
