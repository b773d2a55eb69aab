"""The public names of eigencurve: their only list, read by type checkers and by ``__init__.py``."""

from . import schedules as schedules
from . import spectrum as spectrum
from ._check import ArgumentError as ArgumentError
from ._check import ArgumentWarning as ArgumentWarning
from .adapters.torch import torch_schedule as torch_schedule
from .planning.answer import Plan as Plan
from .planning.plan import plan as plan
from .schedules.base import Schedule as Schedule
from .schedules.comparison import ComparisonRow as ComparisonRow
from .schedules.comparison import ComparisonTable as ComparisonTable
from .schedules.compose import warmup as warmup
from .schedules.cooldown import cooldown as cooldown
from .schedules.decays import constant as constant
from .schedules.decays import cosine as cosine
from .schedules.decays import cosine_power as cosine_power
from .schedules.decays import exponential as exponential
from .schedules.decays import inverse_sqrt as inverse_sqrt
from .schedules.decays import inverse_time as inverse_time
from .schedules.decays import linear as linear
from .schedules.decays import polynomial as polynomial
from .schedules.decays import rex as rex
from .schedules.eigencurve import eigencurve as eigencurve
from .schedules.kinds import schedule_from_dict as schedule_from_dict
from .schedules.one_cycle import one_cycle as one_cycle
from .schedules.piecewise import piecewise as piecewise
from .schedules.staircases import elastic_step as elastic_step
from .schedules.staircases import hold_then_decay as hold_then_decay
from .schedules.staircases import multistep as multistep
from .schedules.staircases import step_decay as step_decay
from .schedules.token_budget import over_tokens as over_tokens
from .schedules.wsd import wsd as wsd
from .schedules.wsd import wsd_cycles as wsd_cycles
from .spectrum.files import load_spectrum as load_spectrum
from .spectrum.files import save_spectrum as save_spectrum
from .spectrum.groups import Groups as Groups
from .spectrum.groups import LogDensity as LogDensity
from .spectrum.groups import extra_term as extra_term
from .spectrum.groups import log_density as log_density
from .spectrum.power_law import PowerLaw as PowerLaw
from .spectrum.power_law import fit_power_law as fit_power_law
from .spectrum.spectrum import Spectrum as Spectrum
from .theory.quadratic import NoisyQuadratic as NoisyQuadratic
from .theory.recursion import DivergenceError as DivergenceError

__version__: str
