"""Studies beyond the paper: the ResNet-20 spectrum, the memory modes, and the demo."""
