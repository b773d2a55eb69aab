"""SGD's expected error on a quadratic, transcribed literally: one coordinate, one step at a time."""


def parts(eigenvalues, weights, noise, error, rates, number=float, power=0.0):
    """½ Σ w_j b_j and ½ Σ w_j v_j after the steps of ``rates``, in the arithmetic of ``number``; noise σ² η^power."""
    bias = variance = number(0)
    for lam, weight, sigma2, e in zip(eigenvalues, weights, noise, error, strict=True):
        b, v = number(e), number(0)
        for eta in rates:
            x = number(eta) * number(lam)
            b = (1 - x) ** 2 * b
            v = (1 - x) ** 2 * v + x**2 * number(sigma2) * number(eta) ** power
        bias += number(weight) * b / 2
        variance += number(weight) * v / 2
    return bias, variance


def momentum_loss(eigenvalues, weights, noise, error, rates, m, nesterov=False):
    """The loss with momentum, from the covariance S of (w, v) and the matrices of one step: S <- A S Aᵀ + Q."""
    loss = 0.0
    for lam, weight, sigma2, e in zip(eigenvalues, weights, noise, error, strict=True):
        s = [[e / lam, 0.0], [0.0, 0.0]]
        for eta in rates:
            # g = lam w - n, v' = m v + g; w' = w - eta v', or with Nesterov w' = w - eta (g + m v')
            if nesterov:
                a = [[1 - eta * lam - eta * m * lam, -eta * m * m], [lam, m]]
                n = [eta * (1 + m), -1.0]
            else:
                a = [[1 - eta * lam, -eta * m], [lam, m]]
                n = [eta, -1.0]
            s = [
                [
                    sum(a[i][k] * s[k][q] * a[j][q] for k in range(2) for q in range(2)) + n[i] * n[j] * sigma2 * lam
                    for j in range(2)
                ]
                for i in range(2)
            ]
        loss += weight * lam * s[0][0] / 2
    return loss


def certificate(eigenvalues, weights, noise, error, T, max_lr):
    """Every coordinate takes its own best step, T times."""
    loss = 0.0
    for lam, weight, sigma2, e in zip(eigenvalues, weights, noise, error, strict=True):
        for _ in range(T):
            wish = e / (e + sigma2) if e > 0 else 0.0
            x = min(max_lr * lam, wish)
            e = (1 - x) ** 2 * e + x**2 * sigma2
        loss += weight * e / 2
    return loss


def certificate_with_power(eigenvalues, weights, noise, error, T, max_lr, power):
    """The same with noise σ² η^power: the best rate by bisection of the derivative of the next error."""
    loss = 0.0
    for lam, weight, sigma2, e in zip(eigenvalues, weights, noise, error, strict=True):
        for _ in range(T):
            low, high = 0.0, max_lr
            for _ in range(60):
                eta = (low + high) / 2
                slope = -2 * lam * (1 - eta * lam) * e + (2 + power) * lam**2 * sigma2 * eta ** (1 + power)
                low, high = (low, eta) if slope > 0 else (eta, high)
            e = (1 - low * lam) ** 2 * e + (low * lam) ** 2 * sigma2 * low**power
        loss += weight * e / 2
    return loss


def edge_of_stability(lam, noise, error, rates, first_rate, gamma):
    """λ E[w²] of one coordinate whose curvature λ (η/η_0)^-γ, and the noise with it, follow the rate."""
    square = error / lam
    for eta in rates:
        curvature = lam * (eta / first_rate) ** -gamma
        square = (1 - eta * curvature) ** 2 * square + eta**2 * noise * curvature
    return lam * square


def coordinatewise(weights, noise, error, T):
    """Proposition 1's own rate for every coordinate: x = 1/(t+1), t = 1 ... T."""
    loss = 0.0
    for weight, sigma2, e in zip(weights, noise, error, strict=True):
        for t in range(1, T + 1):
            x = 1 / (t + 1)
            e = (1 - x) ** 2 * e + x**2 * sigma2
        loss += weight * e / 2
    return loss
