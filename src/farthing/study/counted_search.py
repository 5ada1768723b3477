"""The question of a plan that finds values and counts them at once, perhaps beside other statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from farthing.adaptive.discovery import KeySearch, finding_of
from farthing.adaptive.discovery.found_counts import found_counts
from farthing.adaptive.discovery.search import digest_of
from farthing.curator.questions import PlanQuestion
from farthing.curator.questions import digest_of as digest_of_question
from farthing.data import Dataset
from farthing.inference.answers import level_at_once
from farthing.privacy import Composed, Event
from farthing.statistics import Statistic
from farthing.statistics.answer_records import PostProcessing, stored_form, with_note
from farthing.statistics.measurements import Measurements

_KIND = "count of found values"
_VALUES = "found values"  # the part of the noisy numbers that is the search's
_SEARCHED = 0.5  # the share of the progress that is shown when values are found, and the rest is to come
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Beside:
    """What is measured in the same charge as values are found: a plan whose noise was fixed before anything was drawn.

    Args:
        dataset: The table, with what was found of it before.
        measurements: What is measured, with how much noise.
        answers: Makes answers of that.
    """

    dataset: Dataset
    measurements: Measurements
    answers: PostProcessing

    @property
    def question(self) -> PlanQuestion:
        """The measurements as a question of their own."""
        return PlanQuestion(self.measurements)


@dataclass(frozen=True)
class CountedSearch:
    """The search as a question whose record is a finding and a release.

    Args:
        search: The search, whose noisy counts are released.
        statistic: The count.
        plan: The plan as it is kept with its answers.
        delta: The delta of all of it.
        beside: What is measured in the same charge, if anything is.
    """

    search: KeySearch
    statistic: Statistic
    plan: Mapping[str, Any]
    delta: float
    beside: Beside | None = None

    @property
    def name(self) -> str:
        """The column that is searched."""
        return self.search.name

    @property
    def epsilon(self) -> float:
        """What all of it may cost."""
        return float(self.plan["cost"]["upper"])

    @property
    def prediction(self) -> str:
        """What the search will find."""
        return self.search.prediction

    @cached_property
    def event(self) -> Event:
        """The search, and the measurements beside it: all of them are fixed before anything is drawn."""
        if self.beside is None:
            return self.search.event
        return Composed(((self.search.event, 1), (self.beside.measurements.event, 1)))

    @property
    def digest(self) -> str:
        """Of the search, and of what is measured beside it."""
        if self.beside is None:
            return self.search.digest
        return digest_of([self.search.digest, digest_of_question(self.beside.question, self.beside.dataset)])

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset for which some noise would be too small."""
        self.search.check(dataset)
        if self.beside is not None:
            self.beside.question.check(self.beside.dataset)

    def run(self, dataset: Dataset, progress: Callable[[float], None]) -> Mapping[str, Any]:
        """One pass over the rows for the values, and one for the rest."""
        if self.beside is None:
            return self.search.run(dataset, progress)
        counts = self.search.run(dataset, lambda share: progress(_SEARCHED * share))
        rest = self.beside.measurements.run(
            self.beside.dataset, lambda share: progress(_SEARCHED + (1 - _SEARCHED) * share)
        )
        return {**rest, **{f"{_VALUES}: {name}": part for name, part in counts.items()}}

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """The finding, the answers and the plan that predicted them; the finding alone where there is nothing else.

        How many numbers there are is known now. So is the confidence at which all of them hold at once.
        """
        searched = answers if self.beside is None else _own(answers)
        finished = dict(self.search.finish(searched))
        facts = finished["finding"]
        cells = len(facts["values"])
        if not cells and self.beside is None:
            return finished
        others = [one for one in self.plan["statistics"] if one["name"] != self.statistic.name]
        apart = self.beside is None
        noisy = set() if self.beside is None else {each.name for each in self.beside.answers.outputs if each.slots}
        numbers = cells + sum(one["cells"] for one in others if one["name"] in noisy)
        level = level_at_once(_CONFIDENCE, max(1, numbers), independent=apart)
        forms = {} if self.beside is None else self._beside(answers, others, level)
        planned = {one["name"]: one for one in others}
        if cells:
            own = level_at_once(_CONFIDENCE, cells, independent=True)
            answer = found_counts(self.search.counts, facts, self.statistic.name, rounded=self.statistic.rounded)
            answer = with_note(answer, finding_of(facts).note)
            forms[answer.name] = stored_form(answer, (level, own))
            (count,) = [one for one in self.plan["statistics"] if one["name"] == self.statistic.name]
            asked = {**count["asked"], "kind": _KIND}
            planned[answer.name] = {**count, "cells": cells, "level_at_once": own, "asked": asked}
        order = [one["name"] for one in self.plan["statistics"] if one["name"] in forms]
        at_once = {**self.plan["at_once"], "numbers": numbers, "level": level, "exact": apart}
        plan = {**self.plan, "statistics": [planned[name] for name in order], "at_once": at_once}
        if not cells:
            plan["about"] = "; ".join(filter(None, (self.plan.get("about"), f"{finding_of(facts)}; it was paid for")))
        return {**finished, "answers": [forms[name] for name in order], "plan": plan}

    def _beside(
        self, answers: Mapping[str, Any], planned: Sequence[Mapping[str, Any]], level: float
    ) -> dict[str, dict[str, Any]]:
        """The answers of the other statistics by name, with the intervals that hold at once with the found counts."""
        assert self.beside is not None
        own = {one["name"]: one["level_at_once"] for one in planned}
        levels = tuple((level, own[output.name]) for output in self.beside.answers.outputs)
        made = replace(self.beside.answers, levels=levels)(answers)
        return {form["name"]: form for form in made["answers"]}


def _own(answers: Mapping[str, Any]) -> dict[str, Any]:
    """The noisy numbers of the search by the names that it gave them."""
    start = f"{_VALUES}: "
    return {name.removeprefix(start): part for name, part in answers.items() if name.startswith(start)}
