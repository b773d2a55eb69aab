"""The image experiments: CIFAR-10, CIFAR-100 and ImageNet."""
