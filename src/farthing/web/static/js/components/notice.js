// A framed remark. tone: info, good, warn or bad.
import { html } from "../../vendor/preact.js";

/** <${Notice} tone="warn" title="...">...<//>; live makes screen readers say it when it appears. */
export function Notice({ tone = "info", title, live = false, children, ...rest }) {
  const role = live ? (tone === "bad" ? "alert" : "status") : null;
  return html`<div class=${`notice ${tone}`} role=${role} ...${rest}>
    ${title && html`<p class="notice-title">${title}</p>`}
    ${children}
  </div>`;
}
