// Parts that are drawn again only when something about them changed: a slider moves sixty times a second.

import { Component, html } from "../../vendor/preact.js";

const alike = (one, other) => {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key]);
};

/** The same component, left as it is while all that it is given is the very same. */
export function memo(Inner) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return !alike(this.props, next);
    }

    render(given) {
      return html`<${Inner} ...${given} />`;
    }
  };
}
