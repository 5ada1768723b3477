// Buttons: kind is plain, primary, danger or quiet. A busy one cannot be pressed again.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";

/** <${Button} kind="primary" busy=${busy} onClick=${...}>Save<//> */
export function Button({
  kind = "plain",
  small = false,
  busy = false,
  disabled = false,
  type = "button",
  class: more = "",
  children,
  ...rest
}) {
  return html`<button type=${type} class=${`button ${kind} ${small ? "small" : ""} ${more}`} disabled=${disabled || busy} aria-busy=${busy ? "true" : null} ...${rest}>
    ${busy && html`<span class="spinner" aria-hidden="true"></span>`}${children}
  </button>`;
}

/** A link that looks like a button. */
export function LinkButton({ kind = "plain", small = false, class: more = "", children, ...rest }) {
  return html`<a class=${`button ${kind} ${small ? "small" : ""} ${more}`} ...${rest}>${children}</a>`;
}

/** Copies `text`; says so for two seconds. */
export function CopyButton({ text, label = "Copy", ...rest }) {
  const [said, setSaid] = useState(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    setSaid((await copied(text)) ? "Copied" : "Select the text and copy it by hand");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(null), 2000);
  };
  return html`<${Button} onClick=${copy} ...${rest}><span aria-live="polite">${said ?? label}</span><//>`;
}

/** navigator.clipboard exists only on loopback and https; elsewhere the old way still works. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
