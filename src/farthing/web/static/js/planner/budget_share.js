// How much of what is left this plan may spend, and what is kept for later.

import { html } from "../../vendor/preact.js";
import { NumberField, SliderField } from "../components/field.js";
import { epsilon, percent, privacy } from "../format.js";
import { memo } from "./memo.js";

const LEAST = 0.01; // of what is left: less would be noise alone

/** `left` is the epsilon that is free; the slider's far end means all of it. */
export const Share = memo(({ epsilon: share, reserve: kept, left, actions }) => {
  const reserve = kept ?? 0;
  const now = Math.min(share ?? left, left);
  const moved = (value) => actions.share(value >= left * 0.999 ? null : Number(value.toPrecision(3)));
  const tooMuch = reserve >= now ? `This must be less than the plan's share, ${privacy(now)}.` : null;
  return html`
    <div class="share">
      <${SliderField} label="This plan may use" min=${left * LEAST} max=${left} step=${left / 200} value=${now} onValue=${moved}
        valueText=${`${epsilon(now)}, ${percent((100 * now) / left)} of what is free`} />
      <${NumberField} label="Keep for later" optional value=${kept} unit="ε" error=${tooMuch} hint="Part of that share which this plan leaves unspent."
        onValue=${(number, text) => {
          if (text.trim() === "") actions.reserve(null);
          else if (number !== null && number >= 0 && number < now) actions.reserve(number);
        }} />
    </div>`;
});
