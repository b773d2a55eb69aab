"""Studies of this project's own: the ResNet-20 spectrum, the memory modes, the demo."""
