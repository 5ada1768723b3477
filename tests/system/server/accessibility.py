"""What a screen reader, a keyboard and weak eyes need of every screen, read off the page itself."""

from __future__ import annotations

from playwright.sync_api import Page

# Runs in the page and returns a list of faults; nothing is fetched for it.
_FAULTS = """
() => {
  const faults = [];
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const shown = (element) => `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') ?? ''}"> ${(element.textContent ?? '').trim().slice(0, 40)}`;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const modal = document.querySelector('dialog[open]');

  const levels = all('h1, h2, h3, h4, h5, h6').map((heading) => Number(heading.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) faults.push(`not one main heading: ${levels}`);
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) faults.push(`headings skip a level: ${levels}`); });

  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  for (const id of new Set(ids.filter((one, at) => ids.indexOf(one) !== at))) faults.push(`two elements are called #${id}`);
  for (const name of ['aria-describedby', 'aria-labelledby', 'for'])
    for (const element of all(`[${name}]`))
      for (const id of element.getAttribute(name).split(' '))
        if (!document.getElementById(id)) faults.push(`${name}="${id}" leads nowhere: ${shown(element)}`);

  const named = (element) => element.getAttribute('aria-label') || element.getAttribute('aria-labelledby') || [...(element.labels ?? [])].some((label) => label.textContent.trim());
  for (const element of all('input:not([type=hidden]), select, textarea')) if (!named(element) && element.getAttribute('aria-hidden') !== 'true') faults.push(`no label: ${element.outerHTML.slice(0, 90)}`);
  for (const element of all('button, a[href], summary, [role=button]')) if (!element.textContent.trim() && !element.getAttribute('aria-label')) faults.push(`says nothing: ${element.outerHTML.slice(0, 90)}`);
  for (const element of all('img:not([alt]), [role=img]:not([aria-label]):not([aria-labelledby]):not(:has(title))')) faults.push(`picture without words: ${element.outerHTML.slice(0, 90)}`);
  for (const element of all('th:not([scope])')) faults.push(`header cell without scope: ${shown(element)}`);
  for (const element of all('[tabindex]')) if (element.tabIndex > 0) faults.push(`order of the keyboard is bent: ${shown(element)}`);
  for (const element of all('button, .button, select, input:not([type=checkbox]):not([type=radio]), label.choice, summary'))
    if (!element.classList.contains('unseen') && element.getBoundingClientRect().height < 43.5) faults.push(`too small to touch, ${Math.round(element.getBoundingClientRect().height)} px: ${shown(element)}`);

  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const painted = (colour) => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1); const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const known = new Map();
  const rgba = (colour) => known.get(colour) ?? known.set(colour, painted(colour)).get(colour);
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => { const layers = []; for (let up = element; up; up = up.parentElement) { const layer = rgba(getComputedStyle(up).backgroundColor); layers.push(layer); if (layer[3] === 1) break; } return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]); };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || judged.has(element) || !seen(element) || element.closest('.unseen, [disabled], svg, dialog:not([open])') || (modal && !modal.contains(element))) continue;
    judged.add(element);
    const style = getComputedStyle(element);
    const ground = behind(element);
    const [high, low] = [light(over(rgba(style.color), ground)), light(ground)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)}: ${shown(element)}`);
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return [...new Set(faults)];
}
"""  # noqa: E501


# Colours change in a transition, if only of one frame.
_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def faults(page: Page) -> list[str]:
    """What is wrong with the screen as it stands."""
    found: list[str] = page.evaluate(_FAULTS)
    return found


def faults_of_all_looks(page: Page) -> dict[str, list[str]]:
    """The faults in light and in dark colours, on a desk and on a phone; the look is put back."""
    before = page.viewport_size
    found = {}
    for look, width, scheme in (
        ("light", 1200, "light"),
        ("dark phone", 360, "dark"),
        ("phone", 360, "light"),
    ):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.evaluate(_PAINTED)
        if seen := faults(page):
            found[look] = seen
    page.emulate_media(color_scheme=None)
    if before is not None:
        page.set_viewport_size(before)
    return found
