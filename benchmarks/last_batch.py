"""The effect of a small last batch on the test accuracy: ``python -m benchmarks.last_batch``.

A ResNet-18 with 1/8 of its widths is trained at the constant rate 0.2 on 10,000 images of CIFAR-10 in batches of 128,
so every epoch ends with a batch of 16. The table shows the test accuracy before that batch, after only its batch norm
statistics, and after the update on it.
"""

import copy

import torch

from paper.data.cifar import load_cifar
from paper.data.folder import data_folder
from paper.images.experiment import ImageData
from paper.images.task import ImageTask, best_layout
from paper.models.registry import build
from paper.training.task import Part

NUM_IMAGES, NUM_TEST, BATCH, RATE, EPOCHS = 10_000, 1_000, 128, 0.2, 3


def accuracy(model, task):
    """Accuracy on the test images, in percent."""
    with torch.no_grad():
        total = task.evaluate(model.eval(), Part())["accuracy"]
    model.train()
    return 100 * total.sum / total.count


def with_its_statistics(model, task, batch):
    """A copy of the network whose batch norm has seen the batch, without an update."""
    seen = copy.deepcopy(model)
    with torch.no_grad():
        task.loss(seen, batch)
    return seen


def main():
    torch.set_num_threads(1)
    train, test = load_cifar(data_folder())
    data = ImageData.chosen(train, test, NUM_IMAGES, 0, NUM_TEST)
    model = build("resnet18", 10, 8, 0)
    layout = best_layout(model)
    model = model.to(memory_format=layout).train()
    task = ImageTask(*data.split("test"), BATCH, 0, torch.device("cpu"), layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, weight_decay=5e-4)
    print(f"| epoch | before | statistics of the last {NUM_IMAGES % BATCH} images only | after the update on them |")
    print("| --- | --- | --- | --- |")
    for epoch in range(EPOCHS):
        for batch in task.batches(epoch, 0, Part()):
            if batch.size < BATCH:
                before, seen = accuracy(model, task), accuracy(with_its_statistics(model, task, batch), task)
            optimizer.zero_grad()
            task.loss(model, batch).backward()
            optimizer.step()
        print(f"| {epoch + 1} | {before:.1f} | {seen:.1f} | {accuracy(model, task):.1f} |", flush=True)


if __name__ == "__main__":
    main()
