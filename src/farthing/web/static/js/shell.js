// The frame: brand, navigation, who is signed in, light or dark.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Dialog } from "./components/dialog.js";
import { Toasts, toast } from "./components/toast.js";
import { may, signOut } from "./login_session.js";
import { go, link } from "./router.js";

const NAVIGATION = [
  ["", "Datasets", ["", "wizard", "dataset", "plan", "release", "ask", "series", "synthetic"]],
  ["requests", "Requests", ["requests"]],
  ["ledger", "Ledger", ["ledger"]],
  ["learn", "Learn", ["learn"]],
  ["people", "People", ["people"]],
];

export function Shell({ me, route, children }) {
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <header class="shell-top">
      <div class="shell-bar">
        <a class="brand" href="#/"><img src="static/mark.svg" alt="" width="27" height="27" />farthing</a>
        ${me && html`<${Navigation} route=${route} />`}
        <div class="shell-end">
          <${ThemeToggle} />
          ${me && html`<${Who} me=${me} route=${route} />`}
        </div>
      </div>
    </header>
    <main class="shell-main" id="main" tabindex="-1">
      ${me && route.params.dataset && html`<${DatasetTabs} me=${me} route=${route} />`}
      ${children}
    </main>
    <footer class="shell-foot">
      No row of your data is read until you confirm what it costs. The server, not this page, keeps the account.
      ${me?.version && html` <span class="nowrap">farthing ${me.version}</span>`}
    </footer>
    <${Toasts} />`;
}

function toMain(event) {
  event.preventDefault(); // the hash is the router's
  document.getElementById("main").focus();
}

function Navigation({ route }) {
  return html`<nav class="shell-nav" aria-label="Main">
    <ul>${NAVIGATION.map(
      ([to, title, inside]) => html`<li key=${to}>
      <a href=${link(to)} aria-current=${inside.includes(route.route) ? "page" : null}>${title}</a>
    </li>`,
    )}</ul>
  </nav>`;
}

/** What can be done with one dataset. */
function DatasetTabs({ me, route }) {
  const name = route.params.dataset;
  const tabs = [
    ["dataset", "About", true],
    ["plan", "Plan", true],
    ["ask", "Ask", may(me, "spend")],
    ["series", "Series", true],
    ["synthetic", "Synthetic", true],
    ["ledger", "Ledger", true],
  ];
  return html`<nav class="tabs" aria-label=${"Dataset " + name}>
    <p class="tabs-name" aria-hidden="true">${name}</p>
    <ul>${tabs
      .filter(([, , allowed]) => allowed)
      .map(
        ([to, title]) => html`<li key=${to}>
      <a href=${link(to, name)} aria-current=${route.route === to ? "page" : null}>${title}</a>
    </li>`,
      )}</ul>
  </nav>`;
}

function Who({ me, route }) {
  const menu = useRef(null);
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  useEffect(close, [route]);
  useEffect(() => {
    const outside = (event) => {
      if (!menu.current?.contains(event.target)) close();
    };
    document.addEventListener("click", outside);
    return () => document.removeEventListener("click", outside);
  }, []);
  const [warned, setWarned] = useState(false);
  const leave = () => {
    setWarned(false);
    signOut().then(
      () => go("#/login"),
      (error) => toast(error.message),
    );
  };
  const noWayBack = me.via === "link" && !me.has_password;
  const closeOnEscape = (event) => {
    if (event.key === "Escape") {
      close();
      menu.current.querySelector("summary").focus();
    }
  };
  return html`<details class="who" ref=${menu} onKeyDown=${closeOnEscape}>
    <summary><span>${me.name}</span> <span aria-hidden="true">▾</span></summary>
    <div class="who-menu">
      <p>Signed in as <strong>${me.name}</strong>, ${ROLE_WORDS[me.role] ?? me.role}.</p>
      <a class="button" href="#/people">Password and tokens</a>
      <button class="button" type="button" onClick=${noWayBack ? () => setWarned(true) : leave}>Sign out</button>
    </div>
  </details>
  <${Dialog} open=${warned} title="You have no password" onClose=${() => setWarned(false)} actions=${html`
    <button class="button" type="button" onClick=${leave}>Sign out anyway</button>
    <a class="button primary" href="#/people" onClick=${() => setWarned(false)}>Set a password first</a>`}>
    <p>You signed in with the link that <code>farthing serve</code> printed, which works once. After you sign out, only a new link lets you in again, and the server prints one when it starts.</p>
  <//>`;
}

export const ROLE_WORDS = {
  curator: "curator: declares datasets, sets budgets and may do everything",
  analyst: "analyst: plans, asks, and spends what was granted or approved",
  auditor: "auditor: reads the ledger and spends nothing",
};

const DARK = matchMedia("(prefers-color-scheme: dark)");

function ThemeToggle() {
  const now = () => document.documentElement.dataset.theme ?? (DARK.matches ? "dark" : "light");
  const [theme, setTheme] = useState(now);
  useEffect(() => {
    const changed = () => setTheme(now());
    DARK.addEventListener("change", changed);
    return () => DARK.removeEventListener("change", changed);
  }, []);
  const other = theme === "dark" ? "light" : "dark";
  const change = () => {
    document.documentElement.dataset.theme = other;
    try {
      localStorage.setItem("farthing-theme", other);
    } catch {
      // not remembered, but done
    }
    setTheme(other);
  };
  return html`<button class="button quiet" type="button" onClick=${change} aria-label=${`Use ${other} colours`} title=${`Use ${other} colours`}>
    <span aria-hidden="true">${theme === "dark" ? "☀" : "☾"}</span>
  </button>`;
}
