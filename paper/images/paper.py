"""The numbers that the paper prints for its image experiments (arXiv:2110.14109): all at full scale, on GPUs."""

from __future__ import annotations

INVERSE, STEP, GENERAL = "Inverse Time Decay", "Step Decay", "General Step Decay"
COSINE, EIGENCURVE, ELASTIC = "Cosine Decay", "Eigencurve", "Elastic Step Decay"
REUSED = "Eigencurve, reused"

# Table "CIFAR-10: training losses and test accuracy": by network and epochs, then schedule: loss and accuracy.
CIFAR10: dict[tuple[str, int], dict[str, tuple[str, str]]] = {
    ("resnet18", 10): {
        INVERSE: ("1.58 ± 0.02", "79.45 ± 1.00"),
        STEP: ("1.82 ± 0.04", "73.77 ± 1.48"),
        GENERAL: ("1.52 ± 0.02", "81.99 ± 0.35"),
        COSINE: ("1.42 ± 0.01", "84.23 ± 0.07"),
        EIGENCURVE: ("1.36 ± 0.01", "85.62 ± 0.28"),
    },
    ("googlenet", 10): {
        INVERSE: ("2.61 ± 0.00", "86.54 ± 0.94"),
        STEP: ("2.59 ± 0.02", "87.04 ± 0.48"),
        GENERAL: ("1.93 ± 0.03", "88.32 ± 1.32"),
        COSINE: ("1.94 ± 0.00", "90.56 ± 0.31"),
        EIGENCURVE: ("1.33 ± 0.00", "90.65 ± 0.15"),
        REUSED: ("1.65 ± 0.00", "91.17 ± 0.20"),
    },
    ("vgg16", 10): {
        INVERSE: ("2.26 ± 0.00", "84.47 ± 0.74"),
        STEP: ("2.42 ± 0.45", "82.98 ± 0.27"),
        GENERAL: ("2.14 ± 0.42", "86.79 ± 0.36"),
        COSINE: ("2.03 ± 0.00", "87.99 ± 0.13"),
        EIGENCURVE: ("1.87 ± 0.00", "88.73 ± 0.11"),
        REUSED: ("1.89 ± 0.00", "88.17 ± 0.32"),
    },
    ("resnet18", 100): {
        INVERSE: ("0.73 ± 0.00", "90.82 ± 0.43"),
        STEP: ("0.26 ± 0.01", "91.39 ± 1.03"),
        GENERAL: ("0.17 ± 0.00", "93.97 ± 0.21"),
        COSINE: ("0.17 ± 0.00", "94.04 ± 0.21"),
        EIGENCURVE: ("0.14 ± 0.00", "94.05 ± 0.18"),
    },
    ("googlenet", 100): {
        INVERSE: ("0.62 ± 0.02", "92.05 ± 0.69"),
        STEP: ("0.28 ± 0.00", "92.83 ± 0.15"),
        GENERAL: ("0.13 ± 0.00", "94.18 ± 0.18"),
        COSINE: ("0.12 ± 0.00", "94.62 ± 0.11"),
        EIGENCURVE: ("0.12 ± 0.00", "94.75 ± 0.15"),
        REUSED: ("0.11 ± 0.00", "94.81 ± 0.19"),
    },
    ("vgg16", 100): {
        INVERSE: ("1.32 ± 0.62", "*76.24 ± 13.77"),
        STEP: ("0.59 ± 0.00", "91.37 ± 0.20"),
        GENERAL: ("0.20 ± 0.00", "*92.36 ± 0.46"),
        COSINE: ("0.20 ± 0.00", "93.17 ± 0.05"),
        EIGENCURVE: ("0.18 ± 0.00", "92.88 ± 0.24"),
        REUSED: ("0.20 ± 0.00", "93.17 ± 0.09"),
    },
}

# Table "Training losses and test accuracy of Exponential Moving Average", 100 epochs.
EMA = "Averaged weights, constant rate"
EMA_NUMBERS = {
    "resnet18": ("0.30 ± 0.01", "90.09 ± 0.82"),
    "googlenet": ("0.33 ± 0.01", "93.42 ± 0.26"),
    "vgg16": ("0.49 ± 0.00", "91.87 ± 0.82"),
}

# Table "Elastic Step Decay on CIFAR-10/CIFAR-100": test accuracy on either. "Step Decay" has three intervals here.
THREE_STEPS = "Step Decay, three intervals"
ELASTIC_ACCURACY: dict[tuple[str, int], dict[str, tuple[str, str]]] = {
    ("resnet18", 10): {
        INVERSE: ("79.45 ± 1.00", "48.73 ± 1.66"),
        THREE_STEPS: ("79.67 ± 0.74", "54.54 ± 0.26"),
        COSINE: ("84.23 ± 0.07", "61.26 ± 1.11"),
        ELASTIC: ("85.38 ± 0.38", "64.17 ± 0.57"),
    },
    ("googlenet", 10): {
        INVERSE: ("86.54 ± 0.94", "57.90 ± 1.27"),
        THREE_STEPS: ("88.37 ± 0.13", "63.05 ± 0.35"),
        COSINE: ("90.56 ± 0.31", "69.09 ± 0.27"),
        ELASTIC: ("91.23 ± 0.33", "70.46 ± 0.41"),
    },
    ("vgg16", 10): {
        INVERSE: ("84.47 ± 0.74", "50.04 ± 0.83"),
        THREE_STEPS: ("85.18 ± 0.06", "45.86 ± 0.31"),
        COSINE: ("87.99 ± 0.13", "55.42 ± 0.28"),
        ELASTIC: ("88.67 ± 0.21", "57.23 ± 0.39"),
    },
    ("resnet18", 100): {
        INVERSE: ("90.82 ± 0.43", "69.82 ± 0.37"),
        THREE_STEPS: ("93.68 ± 0.07", "73.13 ± 0.12"),
        COSINE: ("94.04 ± 0.21", "74.65 ± 0.41"),
        ELASTIC: ("94.06 ± 0.11", "74.76 ± 0.33"),
    },
    ("googlenet", 100): {
        INVERSE: ("92.05 ± 0.69", "73.54 ± 0.28"),
        THREE_STEPS: ("94.13 ± 0.32", "76.80 ± 0.16"),
        COSINE: ("94.62 ± 0.11", "78.13 ± 0.54"),
        ELASTIC: ("94.65 ± 0.11", "78.23 ± 0.20"),
    },
    ("vgg16", 100): {
        INVERSE: ("*76.24 ± 13.77", "67.70 ± 0.49"),
        THREE_STEPS: ("92.62 ± 0.15", "70.02 ± 0.41"),
        COSINE: ("93.17 ± 0.05", "72.47 ± 0.28"),
        ELASTIC: ("93.25 ± 0.12", "72.50 ± 0.26"),
    },
}

# Table "Elastic Step Decay on ImageNet-1k", ResNet-50, 90 epochs: training loss, top-1, top-5.
MULTISTEP2, MULTISTEP3 = "Step Decay [30-60]", "Step Decay [30-60-80]"
IMAGENET_ELASTIC = {
    MULTISTEP2: ("1.4726 ± 0.0057", "75.55 ± 0.13", "92.63 ± 0.08"),
    MULTISTEP3: ("1.4738 ± 0.0080", "76.05 ± 0.33", "92.83 ± 0.15"),
    COSINE: ("1.4697 ± 0.0049", "76.57 ± 0.07", "93.25 ± 0.05"),
    ELASTIC: ("1.4317 ± 0.0027", "76.79 ± 0.10", "93.31 ± 0.05"),
}

# Table "Cosine-power Decay on ImageNet", ResNet-18: by epochs, then α: training loss, top-1, top-5.
COSINE_POWER: dict[int, dict[float, tuple[str, str, str]]] = {
    1: {
        0.5: ("5.4085 ± 0.0080", "30.01 ± 0.21", "55.26 ± 0.33"),
        1.0: ("5.4330 ± 0.0106", "26.43 ± 0.31", "50.85 ± 0.43"),
        2.0: ("5.4939 ± 0.0157", "21.81 ± 0.21", "44.53 ± 0.09"),
    },
    5: {
        0.5: ("2.9515 ± 0.0057", "57.27 ± 0.15", "80.71 ± 0.12"),
        1.0: ("2.8389 ± 0.0061", "55.67 ± 0.08", "79.46 ± 0.16"),
        2.0: ("2.9160 ± 0.0099", "52.75 ± 0.20", "77.11 ± 0.08"),
    },
    30: {
        0.5: ("2.1739 ± 0.0046", "67.56 ± 0.03", "87.82 ± 0.09"),
        1.0: ("2.0402 ± 0.0031", "67.97 ± 0.10", "88.12 ± 0.03"),
        2.0: ("2.0525 ± 0.0032", "67.41 ± 0.05", "87.70 ± 0.10"),
    },
    90: {0.5: ("1.9056", "69.85", "89.46"), 1.0: ("1.7676", "70.46", "89.75"), 2.0: ("1.7403", "70.42", "89.69")},
    270: {0.5: ("1.7178", "71.37", "90.31"), 1.0: ("1.5756", "71.93", "90.33"), 2.0: ("1.5250", "71.69", "90.37")},
}
