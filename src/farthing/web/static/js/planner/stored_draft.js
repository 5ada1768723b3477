// A draft that was not saved survives a reload of this tab.

const key = (user, dataset) => `farthing.draft.${user}.${dataset}`;

/** The kept draft in the server's words, with the id and version it was loaded with; null when there is none. */
export function storedDraft(user, dataset) {
  try {
    const stored = JSON.parse(sessionStorage.getItem(key(user, dataset)) ?? "null");
    return Array.isArray(stored?.draft?.statistics) ? stored : null;
  } catch {
    return null;
  }
}

export function storeDraft(user, dataset, draft, saved) {
  try {
    if (draft.statistics.length) sessionStorage.setItem(key(user, dataset), JSON.stringify({ draft, saved }));
    else sessionStorage.removeItem(key(user, dataset));
  } catch {
    // not kept, and nothing lost but convenience
  }
}
