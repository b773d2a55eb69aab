"""The paper's formulas, transcribed line by line: slow, literal, and independent of src."""

import math
from fractions import Fraction


def group_counts(eigenvalues, weights, beta):
    """s_i / d for every i = 0 ... I, empty groups included (Eq. def_si)."""
    mu, largest = min(eigenvalues), max(eigenvalues)
    counts = []
    i = 0
    while mu * beta**i <= largest:
        counts.append(
            sum(w for lam, w in zip(eigenvalues, weights, strict=True) if mu * beta**i <= lam < mu * beta ** (i + 1))
        )
        i += 1
    return counts


def extra_term(eigenvalues, weights, beta):
    """(sum of the roots of s_i)^2 / d (Theorem 1)."""
    return sum(math.sqrt(s) for s in group_counts(eigenvalues, weights, beta)) ** 2


def interval_lengths(counts, total_steps):
    """Delta_i (Eq. delta)."""
    roots = [math.sqrt(s) for s in counts]
    return [root / sum(roots) * total_steps for root in roots]


def released_lengths(counts, total_steps):
    """Whole steps: 1 + floor((T - n) sqrt(s_i) / sum) for each non-empty group, leftovers to the first ones."""
    roots = [math.sqrt(s) for s in counts]
    n = sum(1 for s in counts if s > 0)
    lengths = [
        0 if s == 0 else 1 + math.floor((total_steps - n) * root / sum(roots))
        for s, root in zip(counts, roots, strict=True)
    ]
    left = total_steps - sum(lengths)
    for i, s in enumerate(counts):
        if s > 0 and left > 0:
            lengths[i] += 1
            left -= 1
    return lengths


def eigencurve_rate(t, eigenvalues, lengths, lr, beta):
    """eta_t for a real t (Eq. eta_t with eta_0 in place of 1/L and beta in place of 2)."""
    kappa = max(eigenvalues) / min(eigenvalues)
    start, denominator = 0.0, 1.0
    for i, length in enumerate(lengths):
        if t < start + length or i == len(lengths) - 1:
            return lr / (denominator + beta**i / kappa * (t - start))
        denominator += beta**i / kappa * length
        start += length
    raise AssertionError("no interval")


def eigencurve(eigenvalues, weights, total_steps, lr, beta=2.0, rounding="exact", min_lr=None):
    """All T rates."""
    counts = group_counts(eigenvalues, weights, beta)
    lengths = (interval_lengths if rounding == "exact" else released_lengths)(counts, total_steps)
    rates = [eigencurve_rate(t, eigenvalues, lengths, lr, beta) for t in range(total_steps)]
    if min_lr is None:
        return rates
    first, last = rates[0], rates[-1]
    return [min_lr + (rate - last) * (first - min_lr) / (first - last) for rate in rates]


def elastic_step(total_steps, lr, r):
    """eta_0 / 2^k on [(1 - r^k) T, (1 - r^(k+1)) T), in exact fractions: r is a Fraction."""
    rates = []
    for t in range(total_steps):
        k = 0
        while not (1 - Fraction(r) ** k) * total_steps <= t < (1 - Fraction(r) ** (k + 1)) * total_steps:
            k += 1
        rates.append(lr / 2**k)
    return rates


def step_decay(total_steps, lr, num_intervals, factor):
    """eta_0 / gamma^k on [k, k+1) T/K, in exact fractions."""
    rates = []
    for t in range(total_steps):
        k = 0
        while not Fraction(k * total_steps, num_intervals) <= t < Fraction((k + 1) * total_steps, num_intervals):
            k += 1
        rates.append(lr / factor**k)
    return rates


def cosine_power(total_steps, lr, min_lr, alpha):
    return [
        min_lr + (lr - min_lr) * (0.5 * (1 + math.cos(t / total_steps * math.pi))) ** alpha for t in range(total_steps)
    ]


def inverse_time(total_steps, lr, min_lr):
    """eta_0 / (1 + gamma eta_0 t), gamma from eta_{T-1} = min_lr."""
    gamma = (1 / min_lr - 1 / lr) / (total_steps - 1)
    return [lr / (1 + gamma * lr * t) for t in range(total_steps)]


def exponential(total_steps, lr, min_lr):
    """gamma^t eta_0, gamma from eta_{T-1} = min_lr."""
    gamma = (min_lr / lr) ** (1 / (total_steps - 1))
    return [gamma**t * lr for t in range(total_steps)]
