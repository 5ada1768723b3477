// What every chart has: a drawing as wide as its place, a title and a description that are read aloud, and the same
// numbers as a table for people who cannot or will not look.

import { html, useEffect, useRef, useState } from "../../vendor/preact.js";

let lastId = 0;

/** A number of its own for the ids of this chart. */
export function useIdentity(prefix) {
  const [id] = useState(() => {
    lastId += 1;
    return `${prefix}-${lastId}`;
  });
  return id;
}

/** The width of an element in pixels, kept up to date; text in a drawing is then never scaled. */
export function useWidth(otherwise = 320) {
  const place = useRef(null);
  const [width, setWidth] = useState(otherwise);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const look = () => setWidth(Math.max(160, Math.floor(element.clientWidth || otherwise)));
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [place, width];
}

/**
 * A chart with its words and its table.
 * `draw(width)` gives {height, marks}; `table` is {caption, head: [..], rows: [[..]]}.
 */
export function Figure({ title, description, draw, table, legend, most = 1080, busy = false, note }) {
  const id = useIdentity("chart");
  const [place, space] = useWidth();
  const width = Math.min(space, most);
  const drawing = draw(width);
  return html`
    <figure class="chart" aria-busy=${busy ? "true" : "false"}>
      <figcaption class="chart-title">${title}</figcaption>
      ${legend?.length ? html`<${Legend} entries=${legend} />` : null}
      <div class="chart-place" ref=${place}>
        <svg
          class="chart-drawing" role="img" aria-labelledby="${id}-title ${id}-description"
          width=${width} height=${drawing.height} viewBox="0 0 ${width} ${drawing.height}">
          <title id="${id}-title">${title}</title>
          <desc id="${id}-description">${description}</desc>
          ${drawing.marks}
        </svg>
      </div>
      ${note ? html`<p class="chart-note">${note}</p>` : null}
      ${table ? html`<${AsTable} ...${table} />` : null}
    </figure>`;
}

/** The lines of a chart by name: colour and dash together, so that neither is needed alone. */
export function Legend({ entries }) {
  return html`
    <ul class="chart-legend">
      ${entries.map(
        (entry) => html`
        <li key=${entry.name}>
          <svg class="chart-key" width="28" height="12" viewBox="0 0 28 12" aria-hidden="true">
            ${
              entry.area
                ? html`<rect x="1" y="1" width="26" height="10" class="mark-area ${entry.mark}" />`
                : html`<line x1="1" y1="6" x2="27" y2="6" class="mark-line ${entry.mark}" />`
            }
          </svg>
          <span>${entry.name}</span>
        </li>`,
      )}
    </ul>`;
}

const isWords = (cell) => typeof cell === "string" && cell.length > 14 && cell.includes(" ");

/** The numbers behind a drawing. */
export function AsTable({ caption, head, rows, most = 200 }) {
  const visible = rows.slice(0, most);
  return html`
    <details class="chart-table">
      <summary>Show as table</summary>
      <div class="chart-scroll" tabindex="0" role="region" aria-label=${caption}>
        <table>
          <caption>${caption}${rows.length > most ? ` (the first ${most} of ${rows.length} rows)` : ""}</caption>
          <thead><tr>${head.map((word) => html`<th scope="col" key=${word}>${word}</th>`)}</tr></thead>
          <tbody>
            ${visible.map(
              (row, at) => html`
              <tr key=${at}>
                ${row.map((cell, column) =>
                  column === 0
                    ? html`<th scope="row">${cell}</th>`
                    : html`<td class=${isWords(cell) ? "words" : null}>${cell}</td>`,
                )}
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </details>`;
}
