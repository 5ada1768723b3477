// Live re-planning: at most one question at a time, the newest answer wins, and a proof when the hand rests.

const REST = 400; // milliseconds without a change after which the cost is proven

/** Runs once the frame that holds the change has been handed to the screen. */
function afterPaint(callback) {
  const channel = new MessageChannel();
  channel.port1.onmessage = callback;
  channel.port2.postMessage(0);
}

/**
 * Turns a stream of drafts into painted plans.
 *
 * `price(draft, {proof, signal})` asks the server; `paint(view, draft)` shows an answer; `fail(error, draft)` shows a
 * refusal; `status(text)` is one of "idle", "planning", "resting", "proving". Every repaint leaves a `performance.measure` named
 * "replan" that starts at the change which the painted plan answers.
 */
export class Replanner {
  constructor({ price, paint, fail, status, rest = REST }) {
    Object.assign(this, { price, paint, fail, status, rest });
    this.newest = 0; // number of the newest draft
    this.painted = 0; // number of the newest draft whose answer was shown
    this.flying = null;
    this.timer = null;
    this.stopped = false;
  }

  /** The draft changed; `proof` asks for the proven cost at once. */
  want(draft, { proof = false } = {}) {
    if (this.stopped) return;
    this.newest += 1;
    this.wanted = { number: this.newest, draft, proof, since: performance.now() };
    clearTimeout(this.timer);
    // A proof takes seconds; numbers for a newer draft must not wait for it.
    if (this.flying?.proof) this.flying.stop.abort();
    if (!this.flying || this.flying.proof) this.#ask(this.wanted);
  }

  /** There is nothing to plan any more; answers that are on their way are not shown. */
  forget() {
    this.newest += 1;
    this.painted = this.newest;
    clearTimeout(this.timer);
    this.flying?.stop.abort();
    this.flying = null;
    this.status("idle");
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    this.flying?.stop.abort();
  }

  async #ask(asked) {
    const flight = { ...asked, stop: new AbortController() };
    this.flying = flight;
    this.status(asked.proof ? "proving" : "planning");
    let answer = null;
    let refusal = null;
    try {
      answer = await this.price(asked.draft, { proof: asked.proof, signal: flight.stop.signal });
    } catch (error) {
      refusal = error;
    }
    if (this.flying !== flight || this.stopped) return; // a newer question took its place
    this.flying = null;
    const behind = asked.number < this.newest;
    if (behind) this.#ask(this.wanted);
    if (refusal) {
      if (!behind) {
        this.status("idle");
        this.fail(refusal, asked);
      }
      return;
    }
    if (asked.number >= this.painted) this.#show(answer, asked);
    if (!behind && asked.proof) this.status("idle");
    if (!behind && !asked.proof) {
      this.status("resting");
      this.timer = setTimeout(() => this.#ask({ ...asked, proof: true }), this.rest);
    }
  }

  #show(view, asked) {
    this.painted = asked.number;
    requestAnimationFrame(() => {
      if (this.stopped || asked.number < this.painted) return; // a newer answer came before this frame
      this.paint(view, asked);
      if (!asked.proof) afterPaint(() => performance.measure("replan", { start: asked.since, end: performance.now() }));
    });
  }
}
