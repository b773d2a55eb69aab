"""The rows of the paper's image tables, and the numbers that it prints for them."""

from __future__ import annotations

from paper.page import published_numbers

INVERSE, STEP, GENERAL = "Inverse Time Decay", "Step Decay", "General Step Decay"
COSINE, EIGENCURVE, ELASTIC = "Cosine Decay", "Eigencurve", "Elastic Step Decay"
REUSED = "Eigencurve, reused"
EMA, THREE_STEPS = "Averaged weights, constant rate", "Step Decay, three intervals"
MULTISTEP2, MULTISTEP3 = "Step Decay [30-60]", "Step Decay [30-60-80]"

# By network and epochs, then schedule: training loss and test accuracy; test accuracy on CIFAR-10 and CIFAR-100.
CIFAR10, ELASTIC_ACCURACY = (
    {
        (network, int(epochs)): rows
        for network, each in published_numbers(table).items()
        for epochs, rows in each.items()
    }
    for table in ("cifar10", "elastic")
)
EMA_NUMBERS, IMAGENET_ELASTIC = published_numbers("ema"), published_numbers("imagenet-elastic")
# By epochs, then α: training loss, top-1 and top-5 accuracy.
COSINE_POWER = {
    int(epochs): {float(alpha): numbers for alpha, numbers in rows.items()}
    for epochs, rows in published_numbers("cosine-power").items()
}
