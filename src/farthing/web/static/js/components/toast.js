// Short remarks that go away by themselves; read out politely. Never for errors that need an action.
import { html, useEffect, useState } from "../../vendor/preact.js";

let show = () => {};
let numbered = 0;

/** toast('Saved.') */
export function toast(text, seconds = 5) {
  show({ id: ++numbered, text, seconds });
}

export function Toasts() {
  const [shown, setShown] = useState([]);
  useEffect(() => {
    show = (one) => {
      setShown((all) => [...all.slice(-2), one]);
      setTimeout(() => setShown((all) => all.filter((other) => other.id !== one.id)), one.seconds * 1000);
    };
    return () => {
      show = () => {};
    };
  }, []);
  return html`<div class="toasts" aria-live="polite" aria-atomic="false">
    ${shown.map((one) => html`<div class="toast" key=${one.id}>${one.text}</div>`)}
  </div>`;
}
