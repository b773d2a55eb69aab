"""Hessian products and density runs on the same ResNet-20 and batch: ``python -m benchmarks.peers``.

Compares eigencurve with PyHessian 0.1, hessian-eigenthings 1.0.0a4 and curvlinops-for-pytorch 3, in the separate
environment of ``make bench-peers``. Products are timed alternately in one process and reported as ratios. Each density
run has its own process, so that its peak memory can be measured. Times are processor seconds of one thread. The density
run of eigencurve includes three products that check the operator, and the sharpening. PyHessian calls torch.eig, which
torch no longer has, so a replacement with the old return value is patched in.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from benchmarks.products import seconds
from torch.nn import functional as F

from paper.models.resnet import resnet20

TOOLS = ("eigencurve", "pyhessian", "hessian-eigenthings", "curvlinops")


def problem(num_images: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    return resnet20().eval(), (torch.randn(num_images, 3, 32, 32), torch.randint(0, 10, (num_images,)))


def make_product(tool: str, model: torch.nn.Module, batch: Any) -> Callable[[], Any]:
    parameters = list(model.parameters())
    flat = torch.randn(sum(p.numel() for p in parameters))
    if tool == "eigencurve":
        from eigencurve.hessian import HessianOperator

        operator = HessianOperator(model, F.cross_entropy, batch, check=False)
        return lambda: operator(flat)
    if tool == "pyhessian":
        from pyhessian import hessian
        from pyhessian.utils import hessian_vector_product

        model.zero_grad(set_to_none=True)  # it differentiates whatever the gradients contain
        inner = hessian(model, torch.nn.CrossEntropyLoss(), data=batch, cuda=False)
        vector = [torch.randn_like(p) for p in inner.params]
        return lambda: hessian_vector_product(inner.gradsH, inner.params, vector)
    if tool == "hessian-eigenthings":
        import hessian_eigenthings as peer

        other = peer.HessianOperator(model, [batch], peer.supervised_loss(F.cross_entropy))
        return lambda: other.matvec(flat)
    from curvlinops import HessianLinearOperator

    matrix = HessianLinearOperator(model, torch.nn.CrossEntropyLoss(), parameters, [batch], check_deterministic=False)
    return lambda: matrix @ flat


def run_density(tool: str, model: torch.nn.Module, batch: Any, num_steps: int) -> None:
    if tool == "eigencurve":
        from eigencurve.hessian import HessianOperator, estimate_spectrum

        estimate_spectrum(HessianOperator(model, F.cross_entropy, batch), num_steps, settle=None, progress=False)
    elif tool == "pyhessian":
        from pyhessian import hessian

        torch.eig = _old_eig  # type: ignore[attr-defined]
        hessian(model, torch.nn.CrossEntropyLoss(), data=batch, cuda=False).density(iter=num_steps, n_v=1)
    elif tool == "hessian-eigenthings":
        import hessian_eigenthings as peer

        operator = peer.HessianOperator(model, [batch], peer.supervised_loss(F.cross_entropy))
        peer.spectral_density(operator, num_runs=1, lanczos_steps=num_steps, seed=0)
    else:
        from curvlinops import HessianLinearOperator, lanczos_approximate_spectrum

        matrix = HessianLinearOperator(model, torch.nn.CrossEntropyLoss(), list(model.parameters()), [batch])
        lanczos_approximate_spectrum(matrix, ncv=num_steps)


def _old_eig(matrix: torch.Tensor, eigenvectors: bool = True) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ARG001
    """Return value of torch.eig for a symmetric matrix: real and imaginary parts in two columns."""
    values, vectors = torch.linalg.eigh(matrix)
    return torch.stack((values, torch.zeros_like(values)), dim=1), vectors


def plain_pass(model: torch.nn.Module, batch: Any) -> Callable[[], Any]:
    parameters = list(model.parameters())
    return lambda: torch.autograd.grad(F.cross_entropy(model(batch[0]), batch[1]), parameters)


def compare_products(num_images: int, num_rounds: int) -> list[str]:
    """Median over rounds of the time of a product, divided by that of a forward and backward pass in the same round."""
    model, batch = problem(num_images)
    calls = {"plain": plain_pass(model, batch), **{tool: make_product(tool, model, batch) for tool in TOOLS}}
    for call in calls.values():
        call()
    rounds = [{name: seconds(call) for name, call in calls.items()} for _ in range(num_rounds)]
    lines = [f"{'one product':<22} {'/ forward and backward pass':>34} {'/ eigencurve':>14}"]
    ours = statistics.median(r["eigencurve"] for r in rounds)
    for tool in TOOLS:
        ratio = statistics.median(r[tool] / r["plain"] for r in rounds)
        lines.append(f"{tool:<22} {ratio:>34.2f} {statistics.median(r[tool] for r in rounds) / ours:>14.2f}")
    return lines


def compare_densities(num_images: int, num_steps: int) -> list[str]:
    lines, results = [f"{num_steps}-step density run   {'time / eigencurve':>20} {'peak memory / eigencurve':>26}"], {}
    for tool in TOOLS:
        command = [sys.executable, "-m", "benchmarks.peers", "--child", tool]
        command += ["--images", str(num_images), "--steps", str(num_steps)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            lines.append(f"{tool:<22} failed: {ended.stderr.strip().splitlines()[-1]}")
            continue
        results[tool] = json.loads(ended.stdout.splitlines()[-1])
        ours = results["eigencurve"]
        spent, peak = (results[tool][key] / ours[key] for key in ("seconds", "peak"))
        lines.append(f"{tool:<22} {spent:>20.2f} {peak:>26.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=TOOLS, help="run one density estimate and print the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.child:
        model, batch = problem(options.images)
        spent = seconds(lambda: run_density(options.child, model, batch, options.steps))
        print(json.dumps({"seconds": spent, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
        return
    print(f"ResNet-20, {options.images} images, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print("\n".join(compare_products(options.images, options.rounds)), flush=True)
    print("\n".join(compare_densities(options.images, options.steps)))


if __name__ == "__main__":
    main()
