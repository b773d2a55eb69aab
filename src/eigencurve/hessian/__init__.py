"""Hessian and Gauss-Newton products, and spectrum estimates by Lanczos, for PyTorch models and any other function."""

try:
    import torch as _torch  # noqa: F401 -- checked here once, with the remedy
except ImportError as error:
    raise ImportError("eigencurve.hessian needs PyTorch: pip install eigencurve[torch]") from error

from eigencurve._process import keep_freed_memory
from eigencurve.hessian.accuracy import Settling, log_curve, probe_error
from eigencurve.hessian.bilinear import crashes_channels_last
from eigencurve.hessian.distributed import DistributedOperator
from eigencurve.hessian.estimate import SpectrumEstimate, estimate_spectrum
from eigencurve.hessian.lanczos import LanczosRun, lanczos, shortened
from eigencurve.hessian.matvec import MatvecOperator, as_operator
from eigencurve.hessian.memory import MemoryPlan, plan_memory
from eigencurve.hessian.noise import estimate_noise
from eigencurve.hessian.operator import GaussNewtonOperator, HessianOperator
from eigencurve.hessian.preconditioned import PreconditionedOperator
from eigencurve.hessian.sharded import ShardedHessianOperator
from eigencurve.hessian.start import estimate_start, start_from_gradient
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.start import StartEstimate

__all__ = [
    # products
    "DistributedOperator", "GaussNewtonOperator", "HessianOperator", "MatvecOperator", "PreconditionedOperator",
    "ShardedHessianOperator", "as_operator", "crashes_channels_last",
    # spectra
    "LanczosRun", "MemoryPlan", "SpectrumEstimate", "estimate_spectrum", "keep_freed_memory", "lanczos",
    "plan_memory",
    # how accurate a spectrum is
    "Settling", "log_curve", "probe_error", "shortened",
    # gradient noise and the start of a run
    "NoiseEstimate", "StartEstimate", "estimate_noise", "estimate_start", "start_from_gradient",
]  # fmt: skip
