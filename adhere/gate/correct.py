"""What people's labels say of the judges: agreement, errors, and rates with the errors taken out.

The sample is stratified by the judge's verdict, so the share of ``followed`` among the labels of a
stratum estimates what all its verdicts should have been, and the corrected rate is the sum over
strata by their sizes. That equals Rogan and Gladen's estimator (American Journal of Epidemiology
107, 1978) with sensitivity and specificity weighted by the sampling; its uncertainty is carried
along by draws from the posterior of each stratum (Jeffreys' prior), with what was labelled known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from adhere.gate.labels import kappa
from adhere.gate.record import Subject
from adhere.gate.sample import Population, Stratum, Unit

_DRAWS = 4000
_Draws = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Error:
    """How often a judge is wrong in one stratum: exact binomial interval (Clopper and Pearson)."""

    stratum: Stratum
    size: int
    labelled: int
    wrong: int
    rate: Interval | None


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What is known of one judge. ``raw`` counts labels, the rest is weighted to all verdicts."""

    judge: str
    verdicts: int
    labelled: int
    agreed: int
    agreement: Interval | None
    kappa: Interval | None
    errors: tuple[Error, ...]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A subject's constraint rate as measured and with the judge's error taken out.

    ``missing`` names the strata without any label, because of which there is no correction.
    """

    subject: Subject
    measured: float
    rate: Interval | None
    missing: tuple[Stratum, ...]


class Posterior:
    """What labels say of each stratum's true share of followed."""

    def __init__(
        self, units: Sequence[Unit], truth: Mapping[str, bool | None], seed: int, confidence: float
    ) -> None:
        self.sizes: Counter[Stratum] = Counter(unit.stratum for unit in units)
        self.labelled: Counter[Stratum] = Counter()
        self.followed: Counter[Stratum] = Counter()
        for unit in units:
            told = truth.get(unit.key)
            if told is not None:
                self.labelled[unit.stratum] += 1
                self.followed[unit.stratum] += told
        self._generator = np.random.default_rng(seed)
        self.confidence = confidence
        self.shares = {stratum: self._shares(stratum) for stratum in sorted(self.sizes)}

    def _shares(self, stratum: Stratum) -> _Draws:
        followed, labelled = self.followed[stratum], self.labelled[stratum]
        return self._generator.beta(followed + 0.5, labelled - followed + 0.5, _DRAWS)

    def share(self, stratum: Stratum) -> float:
        """Return the share of followed among the labels of a stratum."""
        return self.followed[stratum] / self.labelled[stratum]

    def rest(self, stratum: Stratum, unlabelled: int) -> _Draws:
        """Draw how many of so many unlabelled verdicts were followed in truth."""
        drawn: _Draws = self._generator.binomial(unlabelled, self.shares[stratum]).astype(float)
        return drawn

    def interval(self, value: float, draws: _Draws) -> Interval:
        """Return an estimate with the quantiles of its draws; never outside of them."""
        tail = (1 - self.confidence) / 2
        low, high = (float(limit) for limit in np.quantile(draws, [tail, 1 - tail]))
        return Interval(value, min(low, value), max(high, value))


def judge_reports(
    found: Population, truth: Mapping[str, bool | None], posterior: Posterior
) -> list[JudgeReport]:
    """Return what is known of each judge."""
    judges = sorted({unit.stratum.judge for unit in found.units})
    return [_report(judge, found, truth, posterior) for judge in judges]


def _report(
    judge: str, found: Population, truth: Mapping[str, bool | None], posterior: Posterior
) -> JudgeReport:
    strata = [stratum for stratum in posterior.shares if stratum.judge == judge]
    known = [stratum for stratum in strata if posterior.labelled[stratum]]
    units = [unit for unit in found.units if unit.stratum.judge == judge]
    told = [(unit.stratum.followed, truth.get(unit.key)) for unit in units]
    agreed = sum(said is people for said, people in told)
    agreement = kappas = None
    if known:
        value = _agreement(known, posterior, {s: posterior.share(s) for s in known})
        draws = [
            _agreement(known, posterior, {s: float(posterior.shares[s][n]) for s in known})
            for n in range(_DRAWS)
        ]
        agreement = posterior.interval(value[0], np.array([each[0] for each in draws]))
        chances = np.array([each[1] for each in draws if each[1] is not None])
        if value[1] is not None and len(chances):
            kappas = posterior.interval(value[1], chances)
    return JudgeReport(
        judge=judge,
        verdicts=len(units),
        labelled=sum(people is not None for _, people in told),
        agreed=agreed,
        agreement=agreement,
        kappa=kappas,
        errors=tuple(_error(stratum, posterior) for stratum in strata),
    )


def _agreement(
    strata: Iterable[Stratum], posterior: Posterior, shares: Mapping[Stratum, float]
) -> tuple[float, float | None]:
    """Return agreement and κ over all verdicts of some strata, given what is true of each."""
    table: dict[tuple[bool, bool], float] = {}
    for stratum in strata:
        size = posterior.sizes[stratum]
        for truth, share in ((True, shares[stratum]), (False, 1 - shares[stratum])):
            cell = (stratum.followed, truth)
            table[cell] = table.get(cell, 0.0) + size * share
    total = sum(table.values())
    agreed = table.get((True, True), 0.0) + table.get((False, False), 0.0)
    return agreed / total, kappa(table)


def _error(stratum: Stratum, posterior: Posterior) -> Error:
    labelled, followed = posterior.labelled[stratum], posterior.followed[stratum]
    wrong = labelled - followed if stratum.followed else followed
    rate = None
    if labelled:
        limits = stats.binomtest(wrong, labelled).proportion_ci(posterior.confidence, "exact")
        rate = Interval(wrong / labelled, float(limits.low), float(limits.high))
    return Error(stratum, posterior.sizes[stratum], labelled, wrong, rate)


def corrected(
    found: Population, truth: Mapping[str, bool | None], posterior: Posterior
) -> list[Corrected]:
    """Return every subject's rate with its judge's error taken out."""
    by_subject: dict[Subject, list[Unit]] = {}
    for unit in found.units:
        by_subject.setdefault(unit.subject, []).append(unit)
    return [
        _correct(subject, units, found, truth, posterior) for subject, units in by_subject.items()
    ]


def _correct(
    subject: Subject,
    units: Sequence[Unit],
    found: Population,
    truth: Mapping[str, bool | None],
    posterior: Posterior,
) -> Corrected:
    scored = found.scored[subject] + len(units)
    fixed = found.followed[subject]
    measured = (fixed + sum(unit.stratum.followed for unit in units)) / scored
    told = [truth.get(unit.key) for unit in units]
    known = fixed + sum(label for label in told if label is not None)
    open_ = Counter(u.stratum for u, label in zip(units, told, strict=True) if label is None)
    missing = tuple(sorted(stratum for stratum in open_ if not posterior.labelled[stratum]))
    if missing:
        return Corrected(subject, measured, None, missing)
    value = known + sum(size * posterior.share(stratum) for stratum, size in open_.items())
    draws = np.full(_DRAWS, float(known))
    for stratum in sorted(open_):
        draws += posterior.rest(stratum, open_[stratum])
    return Corrected(subject, measured, posterior.interval(value / scored, draws / scored), ())
