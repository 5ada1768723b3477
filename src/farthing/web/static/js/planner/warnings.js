// Why a budget protects little, in the server's words: shown with the risk, and before anything is spent.

import { html } from "../../vendor/preact.js";
import { Notice } from "../components/notice.js";

export function Warnings({ lines }) {
  if (!lines?.length) return null;
  return html`<${Notice} tone="warn" title="This gives little protection">${lines.map((line) => html`<p key=${line}>${line}</p>`)}<//>`;
}
