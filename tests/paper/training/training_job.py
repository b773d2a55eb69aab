"""A small training run for the trainer's tests; a module, so that other processes can run it.

``python -m tests.paper.training.training_job OUT CHECKPOINT KILL_AT``: trains, writes the final weights to OUT;
where KILL_AT is not -1 the process kills itself in the middle of that step, as power cuts do.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from eigencurve import cosine
from paper.training.loop import train
from paper.training.settings import TrainingSettings
from paper.training.task import Batch, Total

EPOCHS, STEPS = 3, 5


class Net(nn.Module):
    """A convolution with batch norm, dropout and a linear layer; without the first two for several processes."""

    def __init__(self, random=True):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4) if random else nn.Identity()
        self.drop = nn.Dropout(0.3 if random else 0.0)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.drop(F.relu(self.norm(self.conv(x))).mean((2, 3))))


class Blobs:
    """Batches of random images, the same for the same epoch and step; a task with a state of its own."""

    def __init__(self, size=7, kill_at=-1, num_steps=STEPS):
        self.size, self.kill_at, self.steps_per_epoch = size, kill_at, num_steps
        self.seen = torch.zeros(())
        self.evaluated = []

    def batches(self, epoch, first, part):
        for step in range(first, self.steps_per_epoch):
            generator = torch.Generator().manual_seed(1000 * epoch + step)
            x = torch.randn(self.size, 2, 4, 4, generator=generator)
            y = torch.randint(0, 3, (self.size,), generator=generator)
            own = slice(part.rank, None, part.count)
            if epoch * self.steps_per_epoch + step == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            yield Batch((x[own], y[own]), len(x[own]), len(x))

    def loss(self, model, batch):
        x, y = batch.content
        self.seen = self.seen + x.sum()
        return F.cross_entropy(model(x), y)

    def evaluate(self, model, part):
        self.evaluated.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return {"weight": Total(float(model.fc.weight.sum()), 1), "rank": Total(part.rank, 1)}

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def net(random=True):
    torch.manual_seed(0)
    return Net(random)


def settings(**changes):
    fields = {"schedule": cosine(EPOCHS * STEPS, lr=0.1), "epochs": EPOCHS, "momentum": 0.9, "weight_decay": 0.01}
    return TrainingSettings(**{**fields, **changes})


def job(out, checkpoint, kill_at):
    model, task = net(), Blobs(kill_at=kill_at)
    chosen = settings(ema_decay=0.9, max_norm=0.5)
    found = train(model, task, chosen, run="job", checkpoint=checkpoint, save_seconds=0.0)
    state = {**model.state_dict(), "averaged": task.evaluated[-1]["fc.weight"], "seen": task.seen}
    torch.save({"state": state, "history": {k: torch.tensor(v) for k, v in found.history.items()}}, out)


class StopError(Exception):
    """Ends a run in the middle, in every process at the same step."""


class Stopping(Blobs):
    def loss(self, model, batch):
        if len(self.evaluated) == 1:
            raise StopError
        return super().loss(model, batch)


def shared(folder, name):
    """The part of one of several processes: no batch norm, for that sees only a process's own part.

    Trains twice, the second time stopped in the second epoch and gone on with; writes the weights of both.
    """
    torch.set_num_threads(1)
    models, checkpoint = [net(random=False) for _ in range(2)], folder / f"{name}.run"
    whole = train(models[0], Blobs(), settings(max_norm=0.5))
    with contextlib.suppress(StopError):
        train(net(random=False), Stopping(), settings(max_norm=0.5), checkpoint=checkpoint, save_seconds=0.0)
    if dist.is_initialized():
        dist.barrier()  # the first process writes the file
    stopped_at = torch.load(checkpoint, weights_only=True)["step"]
    resumed = train(models[1], Blobs(), settings(max_norm=0.5), checkpoint=checkpoint, save_seconds=0.0)
    states = [model.state_dict() for model in models]
    torch.save(states, folder / f"{name}{os.environ.get('RANK', '')}.pt")
    return whole, resumed, stopped_at


if __name__ == "__main__":
    torch.set_num_threads(1)
    job(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
