"""Pools and shrinks estimates by empirical Bayes, towards the mean of their kind. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr  # type: ignore[import-untyped]  # it has no types

Array = NDArray[np.float64]

_SPREADS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.1, 1.5])
"""The deviations between memories, or between biases, that are weighed up, in those of the outcome."""
_MEAN_PRIOR = 0.5
"""Prior deviation of a kind's mean and of the mean bias, in those of the outcome."""
_PSEUDO = 0.5
"""Memories that each part of the prior counts as having been seen with: with few memories the prior stays wide."""
_ROUNDS = 200
"""Steps of the EM algorithm, which has converged by then to the third digit."""


@dataclass(frozen=True, slots=True)
class EffectMean:
    """The mean of effects, or of biases."""

    effect: float
    variance: float
    """The variance of the mean itself."""
    between: float
    """The variance between memories."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """The posterior of each effect: a mixture of normal distributions, one row for each memory."""

    weights: Array
    means: Array
    deviations: Array
    """0 in the first column, that of the memories without any effect."""

    def with_means(self, means: Sequence[EffectMean]) -> "Posterior":
        """Adds a row for each mean, which is normal."""
        rows = np.zeros((len(means), self.weights.shape[1]))
        weights, values, deviations = rows.copy(), rows.copy(), rows.copy()
        weights[:, -1] = 1.0
        values[:, -1] = [mean.effect for mean in means]
        deviations[:, -1] = [mean.variance**0.5 for mean in means]
        return Posterior(
            np.vstack([self.weights, weights]),
            np.vstack([self.means, values]),
            np.vstack([self.deviations, deviations]),
        )

    def moments(self) -> tuple[Array, Array]:
        """Returns mean and standard deviation of each effect."""
        mean = (self.weights * self.means).sum(axis=1)
        square = (self.weights * (self.deviations**2 + self.means**2)).sum(axis=1)
        return mean, np.sqrt(np.maximum(0.0, square - mean**2))

    def below(self, limits: Array) -> Array:
        """Returns the probability of each effect to lie below its limit, or at it."""
        distance = limits[:, None] - self.means
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(self.deviations > 0, ndtr(distance / self.deviations), distance >= 0)
        probability: Array = (self.weights * parts).sum(axis=1)
        return probability

    def quantile(self, probability: float) -> Array:
        """Returns the value that each effect lies below with this probability, by bisection."""
        reach = np.abs(self.means).max(axis=1) + 9 * self.deviations.max(axis=1)
        low: Array = -reach
        high: Array = reach
        for _ in range(40):
            middle = (low + high) / 2
            less = self.below(middle) < probability
            low[less], high[~less] = middle[less], middle[~less]
        return high


@dataclass(frozen=True, slots=True)
class Unshrunk:
    """The effect of each memory before shrinkage; the variance is infinite where nothing was measured."""

    effect: Array
    variance: Array

    def add(self, other: "Unshrunk") -> "Unshrunk":
        """Returns the mean of two estimates, taken as independent, each weighted by its precision."""
        precision = 1 / self.variance + 1 / other.variance
        total = self.effect / self.variance + other.effect / other.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            return Unshrunk(np.where(precision > 0, total / precision, 0.0), 1 / precision)

    def mean(self) -> EffectMean:
        """Returns the mean over the memories and their variance around it, each weighted by its marginal likelihood."""
        usable = np.isfinite(self.variance)
        values, variances = self.effect[usable], self.variance[usable]
        weights = 1 / (variances + _SPREADS[:, None] ** 2)
        precisions = weights.sum(axis=1) + 1 / _MEAN_PRIOR**2
        means = (weights * values).sum(axis=1) / precisions
        logs = (
            np.log(weights).sum(axis=1) - np.log(precisions) - (weights * values**2).sum(axis=1) + precisions * means**2
        )
        shares = np.exp((logs - logs.max()) / 2)
        shares /= shares.sum()
        mean = shares @ means
        return EffectMean(mean, shares @ (1 / precisions + (means - mean) ** 2), shares @ _SPREADS**2)

    def pool(self, observational: "Unshrunk") -> "Unshrunk":
        """Adds the regression's coefficients to the experiments, less their bias and as sure as the bias is alike.

        The bias is what the coefficients differ by from the experiments of the same memories: its mean, and its
        variance between memories (Kallus, Puli & Shalit 2018, NeurIPS 31, for the idea; here with random effects).
        """
        difference = observational.effect - self.effect
        bias = Unshrunk(difference, observational.variance + self.variance).mean()
        variance = observational.variance + bias.variance + bias.between
        return self.add(Unshrunk(observational.effect - bias.effect, variance))

    def shrink(self, centre: Array) -> Posterior:
        """Returns the posterior of each effect under a prior that is fitted to all of them by its marginal likelihood.

        The prior is a mixture of normal distributions around the mean of the kind, and of a share of memories without
        any effect (Stephens 2017, Biostatistics 18), fitted by the EM algorithm.
        """
        middles = np.column_stack([np.zeros(len(centre)), *[centre] * len(_SPREADS)])
        spreads = np.concatenate([[0.0], _SPREADS])
        usable = np.isfinite(self.variance)
        variance = np.where(usable, self.variance, 0.0)[:, None] + spreads**2
        distance = (self.effect[:, None] - middles) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.where(usable[:, None], np.exp(-distance / variance / 2) / np.sqrt(variance), 1.0)
            own = np.where(usable[:, None], spreads**2 / variance, 0.0)
        prior = np.full(len(spreads), 1 / len(spreads))
        for _ in range(_ROUNDS):
            weights = likelihood * prior
            weights /= weights.sum(axis=1, keepdims=True)
            prior = weights[usable].sum(axis=0) + _PSEUDO
            prior /= prior.sum()
        means = own * self.effect[:, None] + (1 - own) * middles
        return Posterior(weights, means, spreads * np.sqrt(1 - own))
