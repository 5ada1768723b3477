// Starts the page: who is signed in, which screen, and the frame around it.
import { html, render, useEffect, useErrorBoundary, useState } from "../vendor/preact.js";
import { ErrorBox } from "./components/error.js";
import { Loading } from "./components/loading.js";
import { Page } from "./components/page.js";
import { keepLaunch } from "./launch_link.js";
import { loadMe, useMe } from "./login_session.js";
import { go, useRoute } from "./router.js";
import { Shell } from "./shell.js";

const screens = new Map(); // file name -> component, kept once loaded

function useScreen(name) {
  const [, arrived] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (name === null || screens.has(name)) return;
    setError(null);
    import(`./screens/${name}.js`)
      .then((module) => screens.set(name, module.default))
      .then(() => arrived((n) => n + 1), setError);
  }, [name]);
  return [screens.get(name), error];
}

function App() {
  const me = useMe();
  const route = useRoute();
  const [failure, setFailure] = useState(null);
  const screen = me ? route.screen : "login";
  const [Screen, missing] = useScreen(me === undefined ? null : screen);

  const start = () => {
    setFailure(null);
    loadMe().catch(setFailure);
  };
  useEffect(start, []);
  useEffect(() => {
    if (me && route.route === "login") go("#/", { replace: true });
  }, [me, route.route]);

  let inside;
  if (failure) {
    inside = html`<${Page} title="farthing"><${ErrorBox} error=${failure} onRetry=${start} /><//>`;
  } else if (me === undefined) {
    inside = html`<${Loading} label="Opening farthing" />`;
  } else if (screen === null) {
    inside = html`<${Page} title="There is nothing here" lead="The address does not name a screen.">
      <p><a href="#/">Go to the datasets</a></p><//>`;
  } else if (missing) {
    inside = html`<${Page} title="This screen could not be loaded"><${ErrorBox} error=${missing} onRetry=${() => location.reload()} /><//>`;
  } else if (!Screen) {
    inside = html`<${Loading} />`;
  } else {
    // the key makes a new address a new screen, with nothing left over from the last one
    inside = html`<${Guard} key=${screen + JSON.stringify(route.params)}>
      <${Screen} params=${route.params} search=${route.search} me=${me} />
    <//>`;
  }
  return html`<${Shell} me=${me} route=${route}>${inside}<//>`;
}

/** A screen that breaks says so; the frame around it stays. */
function Guard({ children }) {
  const [error, reset] = useErrorBoundary();
  if (!error) return children;
  return html`<${Page} title="This screen broke">
    <${ErrorBox} error=${error} onRetry=${reset} />
    <p>This spent nothing. If it happens again, the ledger still shows what was spent: <a href="#/ledger">open the ledger</a>.</p>
  <//>`;
}

keepLaunch();
const root = document.getElementById("page");
root.replaceChildren();
render(html`<${App} />`, root);
