"""The planner and the release screens in a real browser: never above the budget, and nothing is spent twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from system.server.browser import Site

PARTS = ("spent", "waiting", "plan", "withheld", "free")
COUNT, MEAN, HISTOGRAM = "How many rows", "The average age", "A histogram of income"

# A question that takes as long as its draft says; answers are painted into a list.
REPLANNER = """async (steps) => {
  const { Replanner } = await import("./static/js/planner/replanner.js");
  const painted = [], told = [];
  let flying = 0, most = 0;
  const pause = (time, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(new DOMException("", "AbortError")); });
  });
  const replanner = new Replanner({
    price: async (draft, { proof, signal }) => {
      flying += 1;
      most = Math.max(most, flying);
      try {
        await pause(proof ? draft.proof : draft.time, signal);
      } finally {
        flying -= 1;
      }
      if (draft.refused) throw new Error(draft.name);
      return `${draft.name}${proof ? " proven" : ""}`;
    },
    paint: (view) => painted.push(view),
    fail: (error) => painted.push(`refused ${error.message}`),
    status: (text) => told.push(text),
    rest: 30,
  });
  for (const step of steps) {
    replanner.want(step);
    await new Promise((resolve) => setTimeout(resolve, step.after));
  }
  const last = steps.at(-1);
  const wanted = last.refused ? `refused ${last.name}` : `${last.name} proven`;
  while (painted.at(-1) !== wanted) await new Promise((resolve) => setTimeout(resolve, 5));
  return { painted, most, told };
}"""


def replanned(page: Page, *steps: dict[str, Any]) -> dict[str, Any]:
    """What a stream of drafts paints; each takes `time`, its proof `proof`, and the next comes `after`."""
    usual = {"time": 10, "proof": 10, "after": 1}
    found: dict[str, Any] = page.evaluate(REPLANNER, [{**usual, **step} for step in steps])
    return found


@pytest.fixture(scope="module")
def bare(browser: Browser, site: Site) -> Iterator[Page]:
    """A page on which modules can be tried alone."""
    with closing(browser.new_context(base_url=site.url)) as context:
        page = context.new_page()
        page.goto("/")
        yield page


def test_a_stream_of_changes_has_one_question_in_flight_and_ends_with_the_newest(bare: Page) -> None:
    found = replanned(bare, *({"name": str(n)} for n in range(30)))
    assert found["most"] == 1
    assert found["painted"][-2:] == ["29", "29 proven"]
    order = [int(name) for name in found["painted"][:-1]]
    assert order == sorted(set(order))


def test_a_slow_proof_gives_way_to_a_newer_draft_and_is_never_painted(bare: Page) -> None:
    found = replanned(bare, {"name": "a", "proof": 60_000, "after": 150}, {"name": "b"})
    assert found["painted"] == ["a", "b", "b proven"]
    assert found["told"].count("proving") == 2


def test_a_slower_answer_never_overwrites_a_newer_one(bare: Page) -> None:
    found = replanned(bare, {"name": "slow", "time": 120, "after": 5}, {"name": "quick", "time": 1})
    assert found["painted"] == ["slow", "quick", "quick proven"]


def test_a_refusal_of_an_older_draft_is_not_shown(bare: Page) -> None:
    found = replanned(bare, {"name": "a", "refused": True, "time": 50}, {"name": "b"})
    assert found["painted"] == ["b", "b proven"]
    assert replanned(bare, {"name": "c", "refused": True})["painted"] == ["refused c"]
