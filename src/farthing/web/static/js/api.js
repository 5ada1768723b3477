// The one place that talks to the server.
// Every function throws ApiError; nobody else looks at a response.

let csrf = null;

/** The token of this sign-in; every change must carry it. */
export function useCsrf(token) {
  csrf = token;
}

/** A refusal, in the server's own words. */
export class ApiError extends Error {
  constructor(status, code, message, fields = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** The address of a route, relative to where the page lives: `address('/datasets')`. */
export function address(path) {
  return "api/v1" + path;
}

/** A query string from an object; what is null or undefined is left out. */
export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? "?" + new URLSearchParams(pairs) : "";
}

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body, options) => call("POST", path, body, options);
export const put = (path, body, options) => call("PUT", path, body, options);
export const patch = (path, body, options) => call("PATCH", path, body, options);
export const remove = (path, options) => call("DELETE", path, undefined, options);

/** A file that is made of what is sent: { blob, name }. */
export const file = (path, body) => call("POST", path, body, { take: taken });

async function taken(response) {
  const named = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: named?.[1] ?? "file" };
}

/** options: signal (an AbortSignal), stay (true: a 401 does not lead to the sign-in screen). */
async function call(method, path, body, { signal, stay = false, take = read } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  let response;
  try {
    response = await fetch(address(path), {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (reason) {
    if (reason.name === "AbortError") throw reason;
    throw new ApiError(0, "unreachable", "Check that farthing serve is running, then try again.");
  }
  if (response.ok) return response.status === 204 ? null : take(response);
  const refusal = (await read(response).catch(() => null))?.error;
  const error = new ApiError(
    response.status,
    refusal?.code ?? "internal",
    refusal?.message ?? `The server answered ${response.status} without saying why.`,
    refusal?.fields ?? {},
  );
  if (error.status === 401 && !stay) window.dispatchEvent(new Event("farthing:signed-out"));
  throw error;
}

async function read(response) {
  const type = response.headers.get("Content-Type") ?? "";
  return type.includes("json") ? response.json() : response.text();
}
