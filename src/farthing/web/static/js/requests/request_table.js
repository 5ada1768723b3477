// Requests in a table, each with the way to the whole of it.
import { html } from "../../vendor/preact.js";
import { Table } from "../components/table.js";
import { charged, moment } from "../format.js";
import { link } from "../router.js";

const TONES = { open: "accent", approved: "good", declined: "bad", used: "", withdrawn: "", expired: "warn" };
const WORDS = { open: "waiting", used: "released" };

export const RequestState = ({ state }) =>
  html`<span class="badge ${TONES[state] ?? ""}">${WORDS[state] ?? state}</span>`;

export function RequestTable({ caption, requests }) {
  return html`<${Table} caption=${caption} hideCaption stacks rows=${requests} rowKey=${(one) => one.id} columns=${[
    {
      key: "title",
      title: "Request",
      head: true,
      cell: (one) => html`<a href=${link("requests", one.id)}>${one.id}: ${one.title}</a>`,
    },
    { key: "analyst", title: "Who" },
    { key: "dataset", title: "Dataset" },
    {
      key: "epsilon",
      title: "Cost",
      right: true,
      cell: (one) => html`<span class="number">${charged(one.epsilon)}</span>`,
    },
    { key: "state", title: "State", cell: (one) => html`<${RequestState} state=${one.state} />` },
    { key: "created", title: "Asked", cell: (one) => html`<span class="nowrap">${moment(one.created)}</span>` },
  ]} />`;
}
