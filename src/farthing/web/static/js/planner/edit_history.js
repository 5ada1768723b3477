// What can be undone and done again: the drafts before and after, where one drag of a slider is one step.

const ONE_EDIT = 1500; // milliseconds within which the same control goes on with the same step
const MOST = 100;

export class EditHistory {
  constructor() {
    this.past = [];
    this.future = [];
    this.last = null; // {edit, time} of the newest step
  }

  /** A change is about to be made to `draft`; says whether it begins a new step. */
  note(draft, edit = null, time = performance.now()) {
    const goesOn = edit !== null && this.last?.edit === edit && time - this.last.time < ONE_EDIT;
    this.last = { edit, time };
    if (goesOn) return false;
    this.past = [...this.past.slice(1 - MOST), draft];
    this.future = [];
    return true;
  }

  /** The newest step was refused and taken back: there is nothing of it to undo. */
  refused() {
    this.past.pop();
    this.last = null;
  }

  /** The draft before the newest step, or null. */
  back(draft) {
    return this.#step(this.past, this.future, draft);
  }

  /** The draft that was undone last, or null. */
  forth(draft) {
    return this.#step(this.future, this.past, draft);
  }

  #step(from, to, draft) {
    if (!from.length) return null;
    to.push(draft);
    this.last = null;
    return from.pop();
  }
}
