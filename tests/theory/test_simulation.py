import pytest

import eigencurve as ec

S = ec.Spectrum([0.01, 0.1, 0.5, 2.0], [5, 3, 1, 1])


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.5, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("f", [ec.cosine(200, 0.5), ec.step_decay(150, 0.3), ec.warmup(ec.linear(80, 0.4), 9)])
def test_agrees_with_sgd_itself(f, momentum, nesterov):
    q = ec.NoisyQuadratic(S, [1.0, 0.5, 2.0, 0.1], [4.0, 1.0, 0.0, 2.0], momentum, nesterov)
    run = q.simulate(f, seed=7, num_replicas=4000)
    assert len(run.losses) == 4000
    # Twelve comparisons exceed 4 standard errors by chance once in 1,300 times, and the seed is fixed.
    assert abs(run.mean - q.expected_loss(f)) < 4 * run.standard_error
    assert run.standard_error < 0.05 * run.mean


@pytest.mark.parametrize("power", [0.25, 1.0])
def test_noise_that_follows_the_rate_agrees_too(power):
    q = ec.NoisyQuadratic(S, [1.0, 0.5, 2.0, 0.1], [4.0, 1.0, 0.0, 2.0], noise_power=power)
    f = ec.cosine(200, 0.5)
    run = q.simulate(f, seed=7, num_replicas=4000)
    assert abs(run.mean - q.expected_loss(f)) < 4 * run.standard_error
    assert run.standard_error < 0.05 * run.mean


def test_simulation_repeats_with_its_seed_and_in_batches(monkeypatch):
    q = ec.NoisyQuadratic(S, 1.0, 1.0)
    f = ec.linear(20, 0.5)
    assert (q.simulate(f, 1, 10).losses == q.simulate(f, 1, 10).losses).all()
    assert (q.simulate(f, 1, 10).losses != q.simulate(f, 2, 10).losses).all()
    monkeypatch.setattr("eigencurve.theory.simulation.BATCH", 12)
    assert len(q.simulate(f, 1, 10).losses) == 10
