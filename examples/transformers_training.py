"""transformers: train a small GPT-2 with the schedule made from its own curvature. Nothing is downloaded."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from eigencurve.adapters.transformers import Measurement, MeasureSchedule
from eigencurve.schedules import fraction

torch.manual_seed(0)
start = torch.randint(0, 16, (128, 1))
rows = (start + 3 * torch.arange(12)) % 16  # each token is the previous one plus three, modulo 16
config = GPT2Config(vocab_size=16, n_positions=12, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
callback = MeasureSchedule(Measurement(lr=0.01, weight_decay=0.01, at_epoch=1, warmup_steps=fraction(0.05)))
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            folder, num_train_epochs=10, learning_rate=0.01, weight_decay=0.01, per_device_train_batch_size=16,
            use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True, logging_strategy="epoch",
            optim="sgd", optim_args="momentum=0.9",
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
        callbacks=[callback],
    )  # fmt: skip
    trainer.train()
print(callback.plan.estimate)
print(callback.scheduler.schedule.preview())
