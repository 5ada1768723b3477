// The screen "Datasets".
import { html } from '../../vendor/preact.js';
import { Page } from '../components/page.js';

export default function Screen({ params, me }) {
  return html`<${Page} title="Datasets" />`;
}
