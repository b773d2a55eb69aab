"""Lightning: measure the curvature after the first epoch, then follow the schedule made from it."""

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import eigencurve as ec
from eigencurve.adapters.lightning import Measurement, MeasureSchedule


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))

    def training_step(self, batch, _index):
        return loss(self, batch)

    def configure_optimizers(self):  # the callback adds the scheduler
        return torch.optim.SGD(self.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3)


def loss(module, batch):
    return F.cross_entropy(module.net(batch[0]), batch[1])


L.seed_everything(0, verbose=False)
x = torch.randn(256, 8)
data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
callback = MeasureSchedule(
    loss, Measurement(lr=0.3, weight_decay=1e-3, at_epoch=1, warmup_steps=ec.schedules.fraction(0.05), num_products=40)
)
module = Classifier()
trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False, callbacks=[callback])
trainer.fit(module, DataLoader(data, batch_size=32, shuffle=True))
print(callback.plan.estimate)
print(callback.scheduler.schedule.preview())
print(f"loss {loss(module, data.tensors).item():.4f}")
