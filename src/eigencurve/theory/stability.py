"""The largest stable learning rate of SGD on a quadratic, without and with momentum."""

from __future__ import annotations


def largest_stable_rate(L: float, momentum: float = 0.0, nesterov: bool = False) -> float:
    r"""The largest constant rate at which the error of no eigenvalue up to L grows.

    .. math:: \frac{2}{L}, \qquad \frac{2(1+m)}{L} \;\text{(heavy ball)}, \qquad
              \frac{2(1+m)}{(1+2m)L} \;\text{(Nesterov momentum as in PyTorch)}

    With :math:`x = \eta\lambda`, one step multiplies (w - w*, v) by a matrix of trace :math:`1+m-qx` and determinant
    :math:`m` (heavy ball, q = 1) or :math:`m(1-x)` (Nesterov, q = 1 + m). Both of its eigenvalues are inside the unit
    circle if and only if |determinant| < 1 and |trace| < 1 + determinant. The limit is where trace = -1 - determinant.

    >>> largest_stable_rate(10.0), largest_stable_rate(10.0, 0.5), largest_stable_rate(10.0, 0.5, nesterov=True)
    (0.2, 0.3, 0.15)
    """
    return 2 * (1 + momentum) / (L * (1 + 2 * momentum) if nesterov else L)


def stable_rate_formula(momentum: float = 0.0, nesterov: bool = False) -> str:
    """The formula of :func:`largest_stable_rate` as text.

    >>> stable_rate_formula(), stable_rate_formula(0.9), stable_rate_formula(0.9, nesterov=True)
    ('2/L', '2(1+m)/L', '2(1+m)/((1+2m)L)')
    """
    if not momentum:
        return "2/L"
    return "2(1+m)/((1+2m)L)" if nesterov else "2(1+m)/L"
