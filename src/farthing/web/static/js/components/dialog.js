// A modal dialog on the browser's own <dialog>: focus stays inside, Escape closes it.
import { html, useEffect, useRef } from "../../vendor/preact.js";
import { Button } from "./button.js";

let numbered = 0;

/** <${Dialog} open=${open} title="..." onClose=${...} actions=${...}>...<//> */
export function Dialog({ open, title, onClose, actions, children }) {
  const frame = useRef(null);
  const id = useRef(null);
  id.current ??= `dialog-${++numbered}`;
  useEffect(() => {
    const element = frame.current;
    if (open && !element.open) element.showModal();
    // Closed before it leaves the page, too: only then does the browser put the focus back to where it was.
    return () => {
      if (element.open) element.close();
    };
  }, [open]);
  const cancel = (event) => {
    event.preventDefault(); // the owner's state decides
    onClose();
  };
  return html`<dialog class="dialog" ref=${frame} onCancel=${cancel} aria-labelledby=${id.current}>
    ${
      open &&
      html`
      <div class="dialog-body"><h2 id=${id.current}>${title}</h2>${children}</div>
      ${actions && html`<div class="dialog-actions">${actions}</div>`}`
    }
  </dialog>`;
}

/** Asks before something that cannot be undone. `confirm` is the word on the button. */
export function ConfirmDialog({ open, title, confirm, kind = "primary", busy = false, onConfirm, onClose, children }) {
  return html`<${Dialog} open=${open} title=${title} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose} disabled=${busy}>Cancel<//>
    <${Button} kind=${kind} busy=${busy} onClick=${onConfirm}>${confirm}<//>`}>${children}<//>`;
}
