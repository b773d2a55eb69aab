"""The repr of every public object is one readable line: no dump of arrays, no address."""

import inspect

import numpy as np
import pytest
from tests.reference.forecast import three_runs

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.planning.warnings import RateLimit
from eigencurve.schedules.kinds import FACTORIES, schedule_of_kind, usual_settings
from eigencurve.spectrum.source import law_source
from eigencurve.theory.stability import stability_report

pytest.importorskip("torch", reason="PyTorch is not installed")
import torch

import eigencurve.hessian as measuring
from eigencurve.adapters.torch import ScheduleLR

LONGEST = 200
SETTINGS = {"multistep": {"milestones": (3,)}, "hold_then_decay": {"hold": 3, "every": 3, "factor": 2.0}}
SETTINGS |= {"cosine_power": {"alpha": 0.5}, "wsd": {"decay_steps": 3}, "inverse_sqrt": {"timescale": 3}}


def core():
    law = ec.PowerLaw(1.5, 1e-3, 1.0)
    spectrum = law.spectrum(200)
    problem = ec.NoisyQuadratic(spectrum, noise=np.full(200, 2.0))
    cosine = ec.cosine(40, 0.1)
    yield from (law, ec.fit_power_law(spectrum), spectrum, ec.spectrum.group(spectrum), ec.log_density(spectrum))
    yield from (spectrum.describe(0.0), law_source(1.5, 1e4), ec.schedules.epochs(3, 391), ec.schedules.fraction(0.1))
    for kind in FACTORIES:
        settings = {**usual_settings(kind, 0.1), **SETTINGS.get(kind, {})}
        yield schedule_of_kind(kind, 40, 0.1, law, 5, **settings)
    yield from (ec.cooldown(cosine, 20, 10), ec.schedules.join([cosine, cosine]), ec.piecewise(4, [0, 3], [0.1, 0.2]))
    yield from (problem, problem.compare({"cosine": cosine}), problem.compare({"cosine": cosine}).rows[0])
    yield from (problem.search_best(40, 1.0), problem.loss_parts(cosine), RateLimit(0.1, "2/L"))
    yield stability_report(L=10.0, lr=0.1)
    plan = ec.plan(law, total_steps=40)
    yield from (plan, plan.evidence, plan.inputs[0], plan.training)


def fitted():
    runs = three_runs()
    forecast = fit_runs(runs)
    table = forecast.compare({"cosine": ec.cosine(500, 0.01)})
    yield from (runs[0], forecast, table, table.rows[0], forecast.predict(ec.cosine(500, 0.01)))


def measured():
    x, y = torch.eye(4), torch.ones(4, 1)
    model = torch.nn.Linear(4, 1)
    operator = measuring.HessianOperator(model, torch.nn.MSELoss(), (x, y))
    other = measuring.GaussNewtonOperator(model, torch.nn.MSELoss(), (x, y))
    estimate = measuring.estimate_spectrum(operator, 5, progress=False)
    start = {name: value + 0.1 for name, value in model.state_dict().items()}
    yield from (operator, other, operator.preconditioned_by(np.full(5, 2.0)))
    yield measuring.MatvecOperator(lambda v: v, 5)
    yield from (estimate, estimate.octaves, estimate.measurement(), estimate.plan)
    yield measuring.lanczos(operator, torch.ones(5), 3)
    yield measuring.Settling(5e-4, 100, torch.float32)
    noise = measuring.estimate_noise(operator, estimate, 2, progress=False)
    began = measuring.estimate_start(operator, (start, model), estimate, progress=False)
    yield from (noise, noise.octaves, began, began.octaves)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    yield ScheduleLR(optimizer, ec.linear(10, 0.1))


@pytest.mark.parametrize("objects", [core, fitted, measured])
def test_reprs_are_readable(objects):
    for made in objects():
        text = repr(made)
        assert " object at 0x" not in text, text
        assert "array(" not in text, text[:300]
        assert "tensor(" not in text, text[:300]
        assert "\n" not in text, text[:300]
        assert isinstance(made, ec.Schedule) or len(text) <= LONGEST, text[:300]


def test_every_public_class_is_covered():
    """A class is covered if one of the objects above is an instance of it."""
    made = [*core(), *fitted(), *measured()]
    names = [getattr(module, name) for module in (ec, measuring) for name in module.__all__]
    # An exception, and what needs several processes.
    exempt = (
        ec.DivergenceError,
        ec.ArgumentError,
        ec.ArgumentWarning,
        measuring.DistributedOperator,
        measuring.ShardedHessianOperator,
    )
    for kind in filter(inspect.isclass, names):
        assert kind in exempt or any(isinstance(one, kind) for one in made), kind
