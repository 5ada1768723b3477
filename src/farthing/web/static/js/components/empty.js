// Nothing here yet: says why, and what to do next.
import { html } from "../../vendor/preact.js";

/** <${Empty} title="No datasets yet" action=${html`<a ...>`}>one sentence<//> */
export function Empty({ title, action, level = 2, children }) {
  const Heading = `h${level}`;
  return html`<div class="empty">
    <${Heading}>${title}<//>
    <p>${children}</p>
    ${action && html`<div class="row">${action}</div>`}
  </div>`;
}
