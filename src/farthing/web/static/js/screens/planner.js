// The screen "Plan": how exact each statistic would be, and what it would cost, before anything is spent.
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { post, query } from "../api.js";
import { Button } from "../components/button.js";
import { Card } from "../components/card.js";
import { Empty } from "../components/empty.js";
import { ErrorBox } from "../components/error.js";
import { CheckField } from "../components/field.js";
import { Loading } from "../components/loading.js";
import { Notice } from "../components/notice.js";
import { Page } from "../components/page.js";
import { Parts } from "../dataset/parts.js";
import { UnknownFacts } from "../dataset/unknown_facts.js";
import { epsilon } from "../format.js";
import { Budget, Exhausted } from "../planner/budget.js";
import { Share } from "../planner/budget_share.js";
import { More } from "../planner/disclosure.js";
import {
  added,
  duplicated,
  emptyDraft,
  expecting,
  fitting,
  forServer,
  fromServer,
  keepable,
  removed,
  required,
  unlocked,
  weighted,
} from "../planner/draft.js";
import { ExpectedPeople, ExpectedRows } from "../planner/expectations.js";
import { MadeUpPicture } from "../planner/made_up_picture.js";
import { memo } from "../planner/memo.js";
import { Code } from "../planner/plan_code.js";
import { Foot } from "../planner/plan_footer.js";
import { usePlanning } from "../planner/plan_state.js";
import { Price } from "../planner/price.js";
import { Refusal } from "../planner/refusal.js";
import { Risk } from "../planner/risk.js";
import { AssumedRows } from "../planner/row_count.js";
import { Drafts, SaveDraft } from "../planner/saved_drafts.js";
import { foundByStages, Stages } from "../planner/stages.js";
import { StatisticForm } from "../planner/statistic_form.js";
import { emptyForm } from "../planner/statistic_kinds.js";
import { StatisticHeads, StatisticRow } from "../planner/statistic_row.js";
import { storeDraft, storedDraft } from "../planner/stored_draft.js";
import { Suggestions } from "../planner/suggestions.js";
import { Warnings } from "../planner/warnings.js";
import { Releases } from "../release/releases.js";
import { link } from "../router.js";
import { knownRows, rememberRows } from "../row_estimates.js";
import { useLoaded } from "../server_data.js";

const LEAD =
  "Choose statistics and see how accurate each would be. Nothing is spent, and no row is read, until you release.";

export default function Screen({ params, me }) {
  const dataset = useLoaded(`/datasets/${encodeURIComponent(params.dataset)}`);
  const saved = useLoaded(params.id ? `/plans/${encodeURIComponent(params.id)}?proof=false` : null);
  const title = `Plan for ${params.dataset}`;
  const error = dataset.error ?? saved.error;
  if (error) {
    return html`<${Page} title=${title}><${ErrorBox} error=${error} onRetry=${() => {
      dataset.reload();
      saved.reload();
    }} />
      <p><a href="#/">Back to the datasets</a></p><//>`;
  }
  if (!dataset.data || (params.id && !saved.data)) {
    return html`<${Page} title=${title} lead=${LEAD}><${Card}><${Loading} label="Loading the plan" lines=${6} /><//><//>`;
  }
  return html`<${Planner} about=${dataset.data} reload=${dataset.reload} saved=${saved.data} me=${me} title=${title} />`;
}

/** The draft to begin with: the saved one, the one this tab kept, or an empty one. */
function beginning(about, saved, me) {
  const stored = storedDraft(me.name, about.name);
  if (saved && (stored?.saved?.id !== saved.id || stored.saved.version !== saved.version)) {
    // Somebody else's draft is a beginning: what is saved from here is one's own.
    const own = saved.owner === me.name ? { id: saved.id, version: saved.version } : null;
    return { draft: fromServer(saved.draft), saved: own };
  }
  const start = stored
    ? { draft: fromServer(stored.draft), saved: stored.saved ?? null }
    : { draft: emptyDraft(about.name), saved: null };
  const rows = knownRows(about.name); // said elsewhere, such as when a session was to be opened
  return rows === null || start.draft.expected.rows !== undefined || about.rows
    ? start
    : { ...start, draft: expecting(start.draft, "rows", rows) };
}

/** An analyst with a grant of nothing: what they plan is asked of a curator. */
const mustAsk = (about) => about.budget.analyst !== null && !(about.budget.total.epsilon > 0);

function Planner({ about, reload, saved: loaded, me, title }) {
  const [first] = useState(() => {
    const start = beginning(about, loaded, me);
    if (mustAsk(about) || start.draft.onRequest)
      return { ...start, draft: { ...start.draft, epsilon: start.draft.epsilon ?? 0.1 }, wanted: null };
    const draft = fitting(start.draft, about.budget.room.epsilon);
    return { ...start, draft, wanted: draft === start.draft ? null : start.draft.epsilon };
  });
  const [saved, setSaved] = useState(first.saved);
  const planning = usePlanning(first.draft, (draft, { proof, signal }) =>
    post(`/plans/price${query({ proof })}`, draft, { signal }),
  );
  const { draft, answer, before, refusal, status, steps } = planning;
  const [chosen, setChosen] = useState(null); // the key of the statistic that is drawn
  const busy = status === "planning"; // a slider that moves is not written down at every step
  useEffect(() => {
    if (!busy) storeDraft(me.name, about.name, forServer(draft), saved);
  }, [draft, saved, busy]);

  const fresh = () => {
    history.replaceState(null, "", link("plan", about.name));
    setSaved(null);
    planning.replace(emptyDraft(about.name));
  };
  const found = async () => {
    await reload();
    planning.setRefusal(null);
    planning.again();
  };
  const actions = useActions(planning);
  const view = answer?.view ?? null;
  const asking = mustAsk(about) || Boolean(draft.onRequest);
  const own = view?.budget ?? about.budget;
  // What is asked for is a part of the dataset's own budget, which the bar of the plan shows.
  const free = asking && view?.bar ? view.bar.free + view.bar.plan : asking ? 1 : own.room.epsilon;
  const most = { epsilon: free, delta: own.remaining.delta };
  const budget = asking ? { ...own, exhausted: false, remaining: most, room: most } : own;
  const left = Math.max(0, free); // of a plan, which may have Gaussian noise
  const stale = Boolean(refusal && !refusal.cause.undo);
  if (budget.exhausted || !(left > 0)) {
    return html`<${Page} title=${title} lead=${LEAD}>
      <${Card} title="Budget"><${Budget} dataset=${about.name} budget=${budget} sentence=${false} /><//>
      <${Exhausted} dataset=${about.name} budget=${budget} me=${me} onAsk=${about.budget.analyst ? () => actions.onRequest(true) : null} />
      <${Parts} data=${about} me=${me} reload=${reload} />
      <${Releases} dataset=${about.name} />
      <${Drafts} dataset=${about.name} me=${me} title="Drafts" />
    <//>`;
  }
  return html`
    <${Page} title=${title} lead=${draft.rows.length ? null : LEAD} class="planner-page">
      <div class="planner">
        <div class="planner-main stack">
          <${UnknownFacts} data=${about} me=${me} onFound=${found} elsewhere=${foundByStages(refusal)} />
          ${view?.assumed_rows ? html`<${AssumedRows} view=${view} budget=${budget} me=${me} onCounted=${planning.again} />` : null}
          <${Card} class="plan-purse" aria-label="Budget">
            <${Budget} dataset=${about.name} budget=${budget} bar=${view?.bar} reserve=${answer?.draft.reserve} stale=${stale} />
            ${about.budget.analyst && !mustAsk(about) ? html`<${CheckField} id="plan-on-request" checked=${asking} onValue=${actions.onRequest} label="Ask a curator for more than my grant" hint="The plan may then cost more than your grant has. Nothing is released before it is approved." />` : null}
            ${draft.rows.length ? html`<${Share} epsilon=${draft.epsilon} reserve=${draft.reserve} left=${left} actions=${actions} />` : null}
          <//>
          ${
            first.wanted === null
              ? null
              : html`
            <${Notice} tone="warn" live title="Less budget is left than this plan was made for">
              <p>It was to use ${epsilon(first.wanted)}; only ${epsilon(left)} is free now, and the plan uses that. Look at the errors again before you release it.</p>
            <//>`
          }
          ${refusal && refusal.cause.kind !== "make" && !refusal.cause.form ? html`<${Problem} refusal=${refusal} actions=${actions} again=${planning.again} />` : null}
          <${Stages} refusal=${refusal} about=${about} me=${me} onFound=${found} />
          <${Statistics} ...${{ about, draft, answer, before, refusal, stale, steps, chosen, onChoose: setChosen, onDismiss: () => planning.setRefusal(null), actions }} />
          <${Parts} data=${about} me=${me} reload=${reload} />
        </div>
        <div class="planner-side stack">
          <${Chosen} ...${{ about, draft, answer, chosen }} />
          <${Outlook} about=${about} view=${view} proving=${status !== "idle"} />
          <${Card} title="Drafts" class="plan-drafts">
            ${
              me.role !== "auditor" && draft.rows.length
                ? html`
              <${SaveDraft} draft=${draft} saved=${saved} onSaved=${setSaved} onLoad=${planning.replace} onTitle=${actions.title} />
              <${Button} kind="quiet" small onClick=${fresh}>Start a new plan<//>`
                : html`<p class="muted small">${me.role === "auditor" ? "Analysts and curators keep their drafts here." : "A plan can be saved here and continued later."}</p>`
            }
            <${Drafts} dataset=${about.name} me=${me} current=${saved} />
          <//>
          <${Releases} dataset=${about.name} />
        </div>
      </div>
      ${view && draft.rows.length ? html`<${Foot} ...${{ view, draft, answer, status, stale, me, budget }} />` : null}
    <//>`;
}

/** What the controls of a row do; each one is a change of the draft. */
function useActions(planning) {
  const newest = useRef(planning);
  newest.current = planning;
  const [actions] = useState(() => {
    const now = () => newest.current;
    const planned = (key) => {
      const { answer } = now();
      return answer?.view.statistics[answer.keys.indexOf(key)] ?? null;
    };
    const keyNamed = (name) => {
      const { answer } = now();
      return answer?.keys[answer.view.statistics.findIndex((one) => one.name === name)] ?? null;
    };
    const make = (key, within, before = (draft) => draft) => {
      const row = now().draft.rows.find((one) => one.key === key);
      const undo = (draft) =>
        row.entry.within === undefined ? unlocked(draft, key) : required(draft, key, row.entry.within);
      now().change((draft) => required(before(draft), key, within), { kind: "make", key, tried: within, undo });
    };
    /** After a lock was taken away or loosened, the wish that it stood against is tried again. */
    const retried = (cause, before) =>
      cause.kind === "make" ? make(cause.key, cause.tried, before) : now().change(before, { kind: "share" });
    return {
      add: (entry, form = null) => {
        let key = null;
        const undo = (draft) => removed(draft, key);
        now().change(
          (draft) => {
            const next = added(draft, entry);
            key = next.rows.at(-1).key;
            return next;
          },
          { kind: "add", undo, form },
        );
      },
      remove: (key) => now().change((draft) => removed(draft, key)),
      duplicate: (key) => now().change((draft) => duplicated(draft, key)),
      weigh: (key, weight) =>
        now().change((draft) => weighted(draft, key, weight), { kind: "change", edit: `weight of ${key}` }),
      expect: (name, value) => {
        if (name === "rows") rememberRows(now().draft.dataset, value);
        now().change((draft) => expecting(draft, name, value), { kind: "change", edit: `expected ${name}` });
      },
      lock: async (key) => {
        // A plan that a slider has just made has no worst error yet: it is asked for, and what is seen is locked.
        const { draft } = now();
        const error = planned(key).worst_error;
        const worst =
          error ??
          (await post("/plans/price", forServer(draft)).catch(() => null))?.statistics[
            draft.rows.findIndex((row) => row.key === key)
          ].worst_error;
        if (worst > 0) make(key, keepable(worst));
      },
      share: (value) => now().change((draft) => ({ ...draft, epsilon: value }), { kind: "share", edit: "share" }),
      reserve: (value) => now().change((draft) => ({ ...draft, reserve: value }), { kind: "share", edit: "reserve" }),
      onRequest: (wanted) =>
        now().change(
          (draft) => ({ ...draft, onRequest: wanted || null, epsilon: wanted ? (draft.epsilon ?? 0.1) : null }),
          {
            kind: "share",
          },
        ),
      title: (name) => now().change((draft) => ({ ...draft, title: name }), { kind: "title" }),
      unlock: (key) => now().change((draft) => unlocked(draft, key)),
      make: (key, within) => make(key, within),
      unlockNamed: (name, cause) => retried(cause, (draft) => unlocked(draft, keyNamed(name))),
      loosen: (name, within, cause) => retried(cause, (draft) => required(draft, keyNamed(name), within)),
    };
  });
  return actions;
}

function Statistics({ about, draft, answer, before, refusal, stale, steps, chosen, onChoose, onDismiss, actions }) {
  const [adding, setAdding] = useState(false);
  const [unfolded, setUnfolded] = useState(() => new Set());
  const [form, setForm] = useState(emptyForm);
  const refused = refusal?.cause.kind === "add" && refusal.cause.form ? refusal : null;
  const open = adding || !draft.rows.length;
  const card = useRef(null);
  const rowsBefore = useRef(draft.rows.length);
  useEffect(() => {
    // People who use a keyboard continue where the change was.
    const grown = draft.rows.length - rowsBefore.current;
    rowsBefore.current = draft.rows.length;
    if (grown > 0) card.current?.querySelector(".statistic:last-child h3")?.focus();
    if (grown < 0 && !refused) card.current?.querySelector(".card-head button:not(:disabled), select")?.focus();
  }, [draft.rows.length]);
  useEffect(() => {
    if (adding && !refused) card.current?.querySelector("#ask-kind")?.focus();
  }, [adding]);
  useEffect(() => {
    if (!refused) return;
    setForm(refused.cause.form); // as it was typed, to be mended
    setAdding(true);
  }, [refused]);
  const add = (entry, typed) => {
    actions.add(entry, typed);
    setForm(emptyForm());
    setAdding(false);
  };
  const cancel = () => {
    setAdding(false);
    if (refused) onDismiss();
  };
  const [unfold] = useState(
    () => (key) =>
      setUnfolded((keys) => {
        const next = new Set(keys);
        if (!next.delete(key)) next.add(key);
        return next;
      }),
  );
  const some = draft.rows.length > 0;
  return html`
    <div ref=${card}>
    <${Card} title=${some ? null : "Statistics"} class="statistics-card">
      ${
        some
          ? html`
        <div class="card-head statistics-head">
          <h2>Statistics</h2>
          <div class="statistics-size">
            <${ExpectedRows} rows=${about.rows} expected=${draft.expected} view=${answer?.view} onExpect=${actions.expect} />
            <${ExpectedPeople} people=${about.people} entries=${draft.rows.map((row) => row.entry)} expected=${draft.expected} onExpect=${actions.expect} />
          </div>
          <div class="row">
            <${Steps} steps=${steps} />
            ${open ? null : html`<${Button} kind="primary" small onClick=${() => setAdding(true)}>Add a statistic<//>`}
          </div>
        </div>`
          : html`<${Empty} level=${3} title="What would you like to know?" action=${html`<${Suggestions} schema=${about.schema} onAdd=${add} />`}>
        Start with one of these, or build your own below. You will see its error at once.<//>`
      }
      ${open ? html`<${StatisticForm} schema=${about.schema} unknown=${about.unknown} unit=${about.unit} form=${form} onForm=${setForm} error=${refused && form === refused.cause.form ? refused.error : null} onAdd=${add} onCancel=${some ? cancel : null} />` : null}
      ${some ? html`<${StatisticHeads} />` : null}
      <ul class="statistics">
        ${draft.rows.map(
          (row) => html`
          <${StatisticRow} key=${row.key} row=${row} planned=${answer?.view.statistics[answer.keys.indexOf(row.key)] ?? null}
            before=${before[row.key]} schema=${about.schema} expected=${draft.expected} stale=${stale} actions=${actions}
            open=${unfolded.has(row.key)} chosen=${row.key === (chosen ?? draft.rows[0].key)} onOpen=${unfold} onChoose=${onChoose}
            refusal=${refusal?.cause.kind === "make" && refusal.cause.key === row.key ? refusal : null} />`,
        )}
      </ul>
    <//>
    </div>`;
}

/** Undo and redo, also by Ctrl+Z and Ctrl+Shift+Z outside of what is being typed. */
function Steps({ steps }) {
  useEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest?.("input:not([type=range]), textarea, select, dialog");
      if (typing || !(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "z") return;
      const step = event.shiftKey ? steps.redo : steps.undo;
      event.preventDefault();
      step?.();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [steps.undo, steps.redo]);
  return html`
    <${Button} kind="quiet" small disabled=${!steps.undo} onClick=${() => steps.undo()} title="Undo (Ctrl+Z)" aria-label="Undo"><span aria-hidden="true">↶</span><//>
    <${Button} kind="quiet" small disabled=${!steps.redo} onClick=${() => steps.redo()} title="Redo (Ctrl+Shift+Z)" aria-label="Redo"><span aria-hidden="true">↷</span><//>`;
}

/** The picture of the chosen statistic, on numbers that are made up. */
function Chosen({ about, draft, answer, chosen }) {
  const row = draft.rows.find((one) => one.key === chosen) ?? draft.rows[0];
  const planned = row ? (answer?.view.statistics[answer.keys.indexOf(row.key)] ?? null) : null;
  if (!planned) return null;
  return html`
    <${Card} class="chosen-card" title="What it could look like">
      <p class="small">${planned.sentence}</p>
      <${MadeUpPicture} planned=${planned} entry=${row.entry} schema=${about.schema} expected=${draft.expected} size=${about.rows ?? answer.view.counted?.lower ?? answer.view.assumed_rows} />
    <//>`;
}

function Problem({ refusal, actions, again }) {
  if (refusal.error.code === "infeasible") return html`<${Refusal} refusal=${refusal} actions=${actions} />`;
  if (refusal.error.code === "budget_exceeded") {
    return html`
      <${Notice} tone="warn" live title="Less budget is left than this plan was made for">
        <p>Somebody else, perhaps you in another window, has spent from the same budget in the meantime.</p>
        <p><${Button} small onClick=${() => actions.share(null)}>Plan with what is left<//></p>
      <//>`;
  }
  const about = { add: "This statistic was not added", open: "This plan cannot be made" }[refusal.cause.kind];
  return html`<${ErrorBox} error=${refusal.error} title=${about} onRetry=${refusal.cause.undo ? null : again} />`;
}

/** Everything beside the statistics; a slider that moves does not touch it until a plan comes back. */
const Outlook = memo(
  ({ about, view, proving }) => html`
  <${Knowledge} about=${about} view=${view} />
  ${
    view
      ? html`
    <${Card} title="Price"><${Price} price=${view.price} cost=${view.cost} delta=${view.delta} proving=${proving} /><//>
    ${view.at_once?.sentence ? html`<${Card} title="All at once"><p class="small">In this plan, ${view.at_once.sentence}.</p><//>` : null}
    <${Card} title="Risk"><${Warnings} lines=${view.warnings} /><${Risk} risk=${view.risk} /><//>
    <${Card} title="As code">
      <p class="small muted">The same plan for a script or a study.toml, to copy.</p>
      <${More} summary="Show the code">${() => html`<${Code} view=${view} />`}<//>
    <//>`
      : null
  }`,
);

function Knowledge({ about, view }) {
  const assumed = view?.assumed ?? [];
  const notes = view?.notes ?? [];
  return html`
    <${Card} title="Assumptions">
      ${assumed.length ? html`<ul class="small assumptions">${assumed.map((line) => html`<li key=${line}>${line}</li>`)}</ul>` : null}
      ${notes.length ? html`<ul class="small notes">${notes.map((line) => html`<li key=${line}>${line}</li>`)}</ul>` : null}
      ${view?.withheld ? html`<p class="small" id="plan-withheld">${view.withheld[0].toUpperCase()}${view.withheld.slice(1)}.</p>` : null}
      ${view?.about ? html`<p class="small">The ${view.about}.</p>` : null}
      <p class="small muted">${about.unit_sentence} <a href=${link("dataset", about.name)}>More about this dataset</a></p>
    <//>`;
}
