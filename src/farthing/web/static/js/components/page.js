// The head of a screen: one heading, one sentence that says what the screen is for.
import { html, useEffect, useRef } from "../../vendor/preact.js";

let opened = 0; // the first screen does not take the focus; each one after it does, so that it is read out

/** <${Page} title="..." lead="one sentence" actions=${...}>...<//> */
export function Page({ title, lead, actions, class: more = "", children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · farthing`;
  }, [title]);
  useEffect(() => {
    opened += 1;
    if (opened > 1) heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  return html`
    <div class=${`page-head ${more}`}>
      <div>
        <h1 ref=${heading} tabindex="-1">${title}</h1>
        ${lead && html`<p class="lead">${lead}</p>`}
      </div>
      ${actions && html`<div class="row">${actions}</div>`}
    </div>
    <div class="stack">${children}</div>`;
}
