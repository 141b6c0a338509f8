"""Random loss: its ratio, and whether losses are independent or come in bursts. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, chdtri, expit, logit, xlogy  # type: ignore[import-untyped]  # no types

from plait.measure.estimates.packets import PacketTimes
from plait.measure.model import NOT_MEASURED, TAIL, LossModel, MeasuredValue

_LEAST_LOSSES = 20
"""With fewer losses, the loss ratio within bursts cannot be fitted."""
_UNSEEN_BURST = 8
"""Mean burst that the upper bound allows for where no loss was seen."""


def loss(packets: PacketTimes) -> tuple[MeasuredValue, LossModel | None]:
    """Return the ratio of lost packets, and the model of those that fits best by the Bayesian information criterion.

    The interval is that of Clopper and Pearson (1934) for as many independent packets as tell the same about the ratio:
    in bursts, each packet tells less. Without any loss there is no model; the upper bound then holds for bursts, too.
    """
    lost = ~packets.arrived
    count, total = lost.size, int(lost.sum())
    if not count:
        return NOT_MEASURED, None
    if not total:
        return MeasuredValue(0.0, 0.0, min(1.0, -np.log(TAIL) * _UNSEEN_BURST / count)), None
    model = _best(lost)
    independent = count / max(1.0, _inflation(lost, model))
    hits = total / count * independent
    low = float(betaincinv(hits, independent - hits + 1, TAIL))
    high = 1.0 if total == count else float(betaincinv(hits + 1, independent - hits, 1 - TAIL))
    return MeasuredValue(total / count, low, high), model


def independent_bound(probes: int) -> float:
    """Return the upper bound of the ratio where none of `probes` packets was lost, for independent losses."""
    return float(betaincinv(1, probes, 1 - TAIL))


_Fit = tuple[LossModel, float, int]
"""A model, the logarithm of its likelihood, and the number of its parameters."""


def _best(lost: NDArray[np.bool_]) -> LossModel:
    count, total = lost.size, int(lost.sum())
    alone = xlogy(total, total / count) + xlogy(count - total, 1 - total / count)
    fits: list[_Fit] = [(LossModel("independent"), float(alone), 1)]
    if 1 < total < count:
        fits.append(_gilbert(lost))
    if _LEAST_LOSSES <= total < count:
        fits.append(_gilbert_elliott(lost, fits[-1][0]))
    return min(fits, key=lambda fit: fit[2] * np.log(count) - 2 * fit[1])[0]


def _gilbert(lost: NDArray[np.bool_]) -> _Fit:
    """Fit the model in which the bad state loses every packet: a Markov chain of losses."""
    before, after = lost[:-1], lost[1:]
    good = int((~before).sum()), int((~before & after).sum())
    bad = int(before.sum()), int((before & ~after).sum())
    p = good[1] / max(1, good[0])
    r = (bad[1] + 0.5) / (bad[0] + 1)  # a burst at the end has no end
    value = sum(
        float(xlogy(moved, chance) + xlogy(stayed - moved, 1 - chance))
        for (stayed, moved), chance in ((good, p), (bad, bad[1] / max(1, bad[0])))
    )
    value += float(xlogy(1.0, (p if lost[0] else r) / (p + r)))
    return LossModel("gilbert", p, r, 1.0), value, 2


def _gilbert_elliott(lost: NDArray[np.bool_], start: LossModel) -> _Fit:
    """Fit the model in which the bad state loses a part of the packets (Elliott 1963), by maximum likelihood."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]  # half a second, which few lines need

    runs = _runs(lost)

    def cost(x: NDArray[np.float64]) -> float:
        return -_likelihood(runs, *expit(x))

    guesses = ((start.p or 0.01, start.r or 0.5, 0.9), (start.p or 0.01, (start.r or 0.5) / 3, 0.5))
    results = [
        minimize(cost, logit(np.clip(guess, 1e-5, 1 - 1e-5)), method="Nelder-Mead", options={"maxfev": 400})
        for guess in guesses
    ]
    best = min(results, key=lambda result: float(result.fun))
    p, r, loss_bad = (float(value) for value in expit(best.x))
    return LossModel("gilbert-elliott", p, r, loss_bad), -float(best.fun), 3


def _runs(lost: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how many packets arrived before the first loss, between two losses, and after the last one."""
    return np.diff(np.concatenate(([-1], np.flatnonzero(lost), [lost.size]))) - 1.0


def _likelihood(runs: NDArray[np.float64], p: float, r: float, loss_bad: float) -> float:
    """Return the logarithm of the likelihood of the runs.

    Only the bad state loses packets, so each loss shows the state, and the likelihood is a product over the runs. The
    powers of the transition matrix M of packets that arrive are f M + g (Cayley and Hamilton).
    """
    stay, go, back, keep = 1 - p, p * (1 - loss_bad), r, (1 - r) * (1 - loss_bad)
    root = max(1e-12, float(np.sqrt((stay - keep) ** 2 + 4 * go * back)))
    larger, smaller = (stay + keep + root) / 2, (stay + keep - root) / 2
    f = (larger**runs - smaller**runs) / root
    g = (larger * smaller**runs - smaller * larger**runs) / root
    fails = np.array([p, 1 - r]) * loss_bad
    start = np.array([r, p]) / (p + r)
    good, bad = f * back, f * keep + g  # after a loss
    first = start @ np.array([[f[0] * stay + g[0], f[0] * go], [good[0], bad[0]]]) @ fails
    between = good[1:-1] * fails[0] + bad[1:-1] * fails[1]
    chances = np.concatenate(([first], between, [good[-1] + bad[-1]]))
    return float(np.log(chances).sum()) if (chances > 0).all() else -np.inf


def _inflation(lost: NDArray[np.bool_], model: LossModel) -> float:
    """Return the variance of the ratio, relative to that of independent losses: 1 + 2 (c1 + c2 + ..).

    `ck` is the correlation of losses k packets apart: a (1 - p - r)^k in a Gilbert-Elliott model. With few bursts their
    length is known badly, so the end of a burst counts with the lower bound of its chance.
    """
    if model.p is None or model.r is None or model.loss_bad is None:
        return 1.0
    bursts = max(1, int((lost[1:] & ~lost[:-1]).sum() + lost[0]))
    r = model.r * float(chdtri(2 * bursts, 0.9)) / (2 * bursts)
    bad, kept = model.p / (model.p + model.r), 1 - model.p - r
    mean = bad * model.loss_bad
    weight = model.loss_bad**2 * bad * (1 - bad) / (mean * (1 - mean))
    return 1 + 2 * weight * kept / (1 - kept)
