"""The networks of the noise study at two scales: a desk machine's, and a smoke test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paper.studies.noise_training import Subject


@dataclass(frozen=True)
class NoiseScale:
    """The size of the study."""

    subjects: tuple[Subject, ...]  # the networks
    num_products: int  # number of products of a spectrum
    num_noise_steps: int  # number of products for each vector of the noise
    num_samples: int  # number of sign vectors
    fewer: tuple[str, ...]  # names of the subjects that are measured again at the end with a quarter of the examples
    # Names of the subjects that are measured again at the end with more examples for the noise alone.
    noisier: tuple[str, ...]


DESK = NoiseScale(
    (
        Subject("resnet18_cifar10_narrow8", "ResNet-18, 1/8 of its widths", "resnet18", 8, lr=0.1, weight_decay=5e-4,
                batch_size=128, num_train=25_600, num_curved=128, num_noisy=1024),
        Subject("vgg16_cifar10_narrow8", "VGG16, 1/8 of its widths", "vgg16", 8, lr=0.05, weight_decay=5e-4,
                batch_size=128, num_train=25_600, num_curved=256, num_noisy=1024),
        Subject("googlenet_cifar10_narrow16", "GoogLeNet, 1/16 of its widths", "googlenet", 16, lr=0.1,
                weight_decay=5e-4, batch_size=128, num_train=12_800, num_curved=64, num_noisy=1024),
        Subject("resnet20_cifar10", "ResNet-20, trained elsewhere", "resnet20", 1, lr=0.1, weight_decay=5e-4,
                batch_size=128, num_train=0, num_curved=256, num_noisy=1024, epochs=0),
        Subject("transformer_ptb_adamw", "Transformer, AdamW", "transformer", 1, lr=3e-3, weight_decay=0.1,
                batch_size=16, num_train=0, num_curved=16, num_noisy=256, optimizer="adamw", rise=0.05, max_norm=1.0,
                num_test=256),
        Subject("transformer_ptb_sgd", "Transformer, SGD", "transformer", 1, lr=0.2, weight_decay=5e-4,
                batch_size=16, num_train=0, num_curved=16, num_noisy=256, rise=0.05, max_norm=1.0, num_test=256),
    ),
    num_products=100, num_noise_steps=40, num_samples=2,
    fewer=("resnet18_cifar10_narrow8", "vgg16_cifar10_narrow8", "resnet20_cifar10"),
    noisier=("resnet18_cifar10_narrow8", "vgg16_cifar10_narrow8", "resnet20_cifar10"),
)  # fmt: skip
_SMALL = {"resnet18": 16, "vgg16": 64, "googlenet": 16, "resnet20": 1, "transformer": 5}
SMOKE = NoiseScale(
    tuple(
        replace(
            subject, divisor=_SMALL[subject.network], batch_size=8, num_train=16, num_curved=4, num_noisy=8, num_test=4
        )
        for subject in DESK.subjects
    ),
    num_products=6, num_noise_steps=6, num_samples=2, fewer=("resnet18_cifar10_narrow8",),
    noisier=("resnet18_cifar10_narrow8",),
)  # fmt: skip


def noise_scale(name: str) -> NoiseScale:
    """The smoke test, or the desk machine's scale for every other name: the paper has no such study."""
    return SMOKE if name == "smoke" else DESK
