// Short remarks that go away by themselves; read out politely. Never for errors that need an action.
import { html, useEffect, useState } from "../../vendor/preact.js";

let show = () => {};
let numbered = 0;

/** toast('Saved.') */
export function toast(text, seconds = 5) {
  show({ id: ++numbered, text, seconds });
}

export function Toasts() {
  const [toasts, setToasts] = useState([]);
  useEffect(() => {
    show = (one) => {
      setToasts((all) => [...all.slice(-2), one]);
      setTimeout(() => setToasts((all) => all.filter((other) => other.id !== one.id)), one.seconds * 1000);
    };
    return () => {
      show = () => {};
    };
  }, []);
  return html`<div class="toasts" aria-live="polite" aria-atomic="false">
    ${toasts.map((one) => html`<div class="toast" key=${one.id}>${one.text}</div>`)}
  </div>`;
}
