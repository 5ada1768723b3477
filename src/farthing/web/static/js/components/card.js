// A frame around things that belong together.
import { html } from "../../vendor/preact.js";

/** <${Card} title="Budget" level=${2} actions=${...}>...<//> */
export function Card({ title, level = 2, actions, class: more = "", children, ...rest }) {
  const Heading = `h${level}`;
  return html`<section class=${`card ${more}`} ...${rest}>
    ${
      (title || actions) &&
      html`<div class="card-head">
      ${title && html`<${Heading}>${title}<//>`}
      ${actions && html`<div class="row">${actions}</div>`}
    </div>`
    }
    ${children}
  </section>`;
}
