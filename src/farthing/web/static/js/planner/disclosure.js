// Something to unfold; what is inside is made only when somebody looks.

import { html, useState } from "../../vendor/preact.js";

export function More({ summary, children, opened = false }) {
  const [open, setOpen] = useState(opened);
  return html`
    <details class="more" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${summary}</summary>
      ${open ? children() : null}
    </details>`;
}
