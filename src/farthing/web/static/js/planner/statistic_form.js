// Asking for a statistic in plain words: what, of which column, for which groups, for which rows.

import { html, useRef, useState } from "../../vendor/preact.js";
import { ErrorBox } from "../components/error.js";
import { Fault } from "../components/expression_error.js";
import { conditionText, joined, operatorsFor } from "./conditions.js";
import {
  bandsOf,
  cellsOf,
  columnsFor,
  countsPeople,
  entryOf,
  featuresFor,
  groupsOf,
  isBanded,
  KINDS,
  kindOf,
  mayHaveCells,
  needsBands,
  needsCells,
  withUnknown,
} from "./statistic_kinds.js";

/**
 * The whole form; `onAdd(entry, form)` gets the words of study.toml. What is typed is kept by the component that shows it, so that
 * it is still there when the server refuses it with `error`.
 */
export function StatisticForm({ schema, unknown = [], unit = [], form, onForm, error = null, onAdd, onCancel }) {
  const [tried, setTried] = useState(false);
  const where = useRef(null);
  const set = (changes) => onForm((before) => ({ ...before, ...changes }));
  const kind = kindOf(form.kind);
  const columns = withUnknown(schema, unknown);
  const { entry, problem } = entryOf(form, columns);
  const submit = (event) => {
    event.preventDefault();
    setTried(true);
    if (entry) onAdd(entry, form);
  };
  return html`
    <form class="statistic-form" onSubmit=${submit} aria-label="Add a statistic" noValidate>
      <div class="statistic-form-top">
        <div class="field">
          <label for="ask-kind">What do you want to know?</label>
          <select id="ask-kind" class="input" value=${form.kind} onChange=${(event) => set({ kind: event.target.value })} aria-describedby="ask-kind-hint">
            ${KINDS.map((one) => html`<option key=${one.kind} value=${one.kind}>${one.words}</option>`)}
          </select>
          <p class="hint" id="ask-kind-hint">${kind.help}</p>
        </div>
        <${Columns} ...${{ form, set, kind, schema: columns }} />
      </div>
      <${Groups} ...${{ form, set, schema, unknown, kind }} />
      ${unit?.length && countsPeople(kind) ? html`<${Counted} ...${{ form, set, kind, unit, schema: columns }} />` : null}
      ${mayHaveCells(kind, unit) ? html`<${Cells} ...${{ form, set }} label="For how many values may one person count? (optional)" />` : null}
      <${Rows} ...${{ form, set, schema, error, where }} />
      ${error && error.code !== "invalid_expression" ? html`<${ErrorBox} error=${error} title="This statistic was not added" />` : null}
      ${tried && problem ? html`<p class="field-error" role="alert">${problem}</p>` : null}
      <div class="row">
        <button class="button primary" type="submit">Add to the plan</button>
        ${onCancel ? html`<button class="button quiet" type="button" onClick=${onCancel}>Cancel</button>` : null}
        <span class="muted small">Nothing is spent, and no row is read.</span>
      </div>
    </form>`;
}

function Columns({ form, set, kind, schema }) {
  const known = columnsFor(kind, schema);
  const chosen = known.find((column) => column.name === form.column) ?? known[0];
  const many = kind.columns ? form.columns.map((name) => schema.find((column) => column.name === name)) : [];
  const subjects = kind.columns ? many : [chosen];
  const cut = kind.bins && subjects.some(isBanded);
  const must = kind.bins && subjects.some(needsBands);
  const bands = cut ? bandsOf(form, subjects) : NaN;
  return html`
    ${
      kind.column
        ? html`
      <div class="field">
        <label for="ask-column">${kind.features ? "Which column is explained?" : "Which column?"}</label>
        ${
          known.length
            ? html`
          <select id="ask-column" class="input" value=${chosen.name} onChange=${(event) => set({ column: event.target.value })}>
            ${known.map((column) => html`<option key=${column.name} value=${column.name}>${column.name}</option>`)}
          </select>
          <p class="hint">${columnWords(chosen)}</p>`
            : html`<p class="hint">No column of this dataset can be used for this.</p>`
        }
      </div>`
        : null
    }
    ${kind.columns ? html`<${Several} legend="Which columns?" columns=${known} chosen=${form.columns} onChange=${(columns) => set({ columns })} />` : null}
    ${
      kind.features
        ? html`<${Several} legend="On which columns may it depend?" columns=${featuresFor(kind, schema).filter((column) => column.name !== chosen?.name)}
        chosen=${form.features} onChange=${(features) => set({ features })} />`
        : null
    }
    ${
      cut
        ? html`
      <div class="field">
        <label for="ask-bins">How many bands?</label>
        <input id="ask-bins" class="input short" type="number" inputmode="numeric" min="1" max="10000" step="1" value=${Number.isNaN(bands) ? "" : bands}
          onInput=${(event) => set({ bins: event.target.valueAsNumber })} aria-describedby="ask-bins-hint" />
        <p class="hint" id="ask-bins-hint">Fewer, wider bands are more accurate.${must ? "" : " Leave it empty for a band for each value."}</p>
      </div>`
        : null
    }
    ${
      kind.most
        ? html`
      <div class="field">
        <label for="ask-most">How many values?</label>
        <input id="ask-most" class="input short" type="number" inputmode="numeric" min="1" max="10000" step="1" value=${Number.isNaN(form.most) ? "" : form.most}
          onInput=${(event) => set({ most: event.target.valueAsNumber })} aria-describedby="ask-most-hint" />
        <p class="hint" id="ask-most-hint">All values are counted; the most frequent are shown. More cost nothing.</p>
      </div>`
        : null
    }
    ${
      kind.share
        ? html`
      <div class="field">
        <label for="ask-share">Which percentile?</label>
        <span class="input-unit"><input id="ask-share" class="input short" type="number" min="0.1" max="99.9" step="0.1" value=${form.share} onInput=${(event) => set({ share: event.target.valueAsNumber })} /> %</span>
      </div>`
        : null
    }
    ${
      kind.shares
        ? html`
      <div class="field">
        <label for="ask-shares">Which percentiles?</label>
        <input id="ask-shares" class="input" value=${form.shares} onInput=${(event) => set({ shares: event.target.value })} />
      </div>`
        : null
    }`;
}

function Several({ legend, columns, chosen, onChange }) {
  const toggle = (name) => onChange(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`
    <fieldset class="field">
      <legend>${legend}</legend>
      <div class="chips">
        ${columns.map(
          (column) => html`
          <label class="chip" key=${column.name}>
            <input type="checkbox" checked=${chosen.includes(column.name)} onChange=${() => toggle(column.name)} />
            <span>${column.name}</span>
          </label>`,
        )}
      </div>
    </fieldset>`;
}

function Groups({ form, set, schema, unknown, kind }) {
  const used = new Set([form.column, ...(kind.columns ? form.columns : [])]);
  // A count by a text whose values nobody listed finds them by itself; everything else needs to know them first.
  const open = kind.kind === "count" ? unknown.filter((one) => one.kind === "text" && one.finding === null) : [];
  const groups = [...groupsOf(schema).filter((column) => kind.kind === "count" || !used.has(column.name)), ...open];
  if (!groups.length) return null;
  return html`
    <details class="more" open=${form.by.length > 0}>
      <summary>For each group separately (optional)</summary>
      <${Several} legend="One answer for each value of" columns=${groups} chosen=${form.by} onChange=${(by) => set({ by })} />
      ${form.people ? null : html`<p class="hint">Groups share no rows, so ten groups cost no more privacy than one; but each group has fewer rows.</p>`}
      ${open.length ? html`<p class="hint">Nobody listed the values of ${open.map((one) => one.name).join(", ")}. A count of people by one of them finds the values that enough people share and counts them at once.</p>` : null}
    </details>`;
}

function Counted({ form, set, kind, unit, schema }) {
  const who = unit.join(" and ");
  return html`
    <fieldset class="field">
      <legend>Count</legend>
      <div class="chips">
        <label class="chip"><input type="radio" name="ask-of" checked=${!form.people} onChange=${() => set({ people: false })} /><span>rows</span></label>
        <label class="chip"><input type="radio" name="ask-of" checked=${form.people} onChange=${() => set({ people: true })} /><span>people (one per ${who})</span></label>
      </div>
      ${form.people ? html`<p class="hint">Everybody counts once in a cell, however many rows they have there.</p>` : null}
      ${
        needsCells(kind, form)
          ? html`<${Cells} ...${{ form, set }} label="In how many cells may one person count?" all=${cellsOf(form, schema)} />`
          : null
      }
    </fieldset>`;
}

function Cells({ form, set, label, all = NaN }) {
  return html`<div class="field">
    <label for="ask-cells">${label}</label>
    <input id="ask-cells" class="input short" type="number" inputmode="numeric" min="1" max="1000000" step="1" value=${Number.isNaN(form.cells) ? "" : (form.cells ?? "")}
      onInput=${(event) => set({ cells: event.target.valueAsNumber })} aria-describedby="ask-cells-hint" />
    <p class="hint" id="ask-cells-hint">More need more noise. If a person is in more, some are left out at random.${all >= 1 ? ` There are ${all.toLocaleString("en")}: with that many, nobody is left out.` : ""}</p>
  </div>`;
}

function Rows({ form, set, schema, error, where }) {
  const fault = error?.code === "invalid_expression";
  const [choice, setChoice] = useState({ name: schema[0]?.name, operator: "", value: "" });
  const column = schema.find((one) => one.name === choice.name) ?? schema[0];
  const operators = operatorsFor(column);
  const operator = operators.some(([one]) => one === choice.operator) ? choice.operator : operators[0]?.[0];
  const value =
    column?.kind === "categories"
      ? ((column.categories ?? []).find((one) => String(one) === choice.value) ?? column.categories?.[0])
      : choice.value;
  const text = conditionText({ column, operator, value });
  const numbers = column && ["integers", "reals"].includes(column.kind);
  return html`
    <details class="more" open=${form.where !== ""}>
      <summary>Only some of the rows (optional)</summary>
      <div class="condition" role="group" aria-label="A condition">
        <label class="field"><span class="label">Column</span>
          <select class="input" value=${column?.name} onChange=${(event) => setChoice({ name: event.target.value, operator: "", value: "" })}>
            ${schema.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
          </select></label>
        <label class="field"><span class="label">Rule</span>
          <select class="input" value=${operator} onChange=${(event) => setChoice({ ...choice, operator: event.target.value })}>
            ${operators.map(([one, words]) => html`<option key=${one} value=${one}>${words}</option>`)}
          </select></label>
        ${
          column?.kind === "categories"
            ? html`
          <label class="field"><span class="label">Value</span>
            <select class="input" value=${String(value)} onChange=${(event) => setChoice({ ...choice, value: event.target.value })}>
              ${(column.categories ?? []).map((one) => html`<option key=${one} value=${String(one)}>${String(one)}</option>`)}
            </select></label>`
            : column?.kind === "flags"
              ? null
              : html`
          <label class="field"><span class="label">Value</span>
            <input class="input" type=${numbers ? "number" : "date"} step="any" value=${choice.value} onInput=${(event) => setChoice({ ...choice, value: event.target.value })} /></label>`
        }
        <button class="button" type="button" disabled=${!text} onClick=${() => {
          set({ where: joined(form.where, text) });
          setChoice({ ...choice, value: "" });
        }}>
          ${form.where ? "And this" : "Use this"}
        </button>
      </div>
      <div class="field">
        <label for="ask-where">The condition</label>
        <input id="ask-where" ref=${where} class="input" aria-invalid=${fault ? "true" : null} aria-describedby=${fault ? "ask-where-fault" : null} value=${form.where} placeholder="all rows" spellcheck=${false} autocomplete="off" onInput=${(event) => set({ where: event.target.value })} />
        ${fault ? html`<${Fault} live id="ask-where-fault" title="This condition cannot be read; the statistic was not added" error=${error} asked=${form.where.trim()} field=${where} />` : null}
        <p class="hint">You can also write it yourself, for example <code>${"age >= 18 and age < 65"}</code>.</p>
      </div>
    </details>`;
}

/** A column in words. */
export function columnWords(column) {
  if (!column) return "";
  if (column.kind === "categories")
    return `one of ${(column.categories ?? []).slice(0, 6).join(", ")}${(column.categories ?? []).length > 6 ? ", …" : ""}`;
  if (column.kind === "flags") return "true or false";
  if (column.kind === "open") return "text whose values nobody listed: all different ones are counted";
  const what = column.kind === "dates" ? "dates" : column.kind === "integers" ? "whole numbers" : "numbers";
  if (column.unknown) return `${what} whose range nobody knows yet`;
  return `${what} from ${Number.isFinite(column.lower) ? column.lower.toLocaleString("en") : column.lower} to ${Number.isFinite(column.upper) ? column.upper.toLocaleString("en") : column.upper}`;
}
