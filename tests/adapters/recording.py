"""The rates that a PyTorch optimizer really steps with, whoever drives it."""


def recorded(optimizer):
    """A list that grows by the rates of all groups at every real step of ``optimizer``."""
    seen = []
    optimizer.register_step_pre_hook(
        lambda stepping, *_: seen.append([float(group["lr"]) for group in stepping.param_groups])
    )
    return seen
