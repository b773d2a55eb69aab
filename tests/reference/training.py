"""One run of SGD or AdamW written out step by step: clipping, weight decay, momentum, schedule, averaged weights."""

import torch


def literal_sgd(model, task, settings, part):
    """The weights after every step, and the average of weights and statistics, by the formulas alone."""
    velocity, history, steps = {}, [], 0
    average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for epoch in range(settings.epochs):
        for batch in task.batches(epoch, 0, part):
            model.zero_grad()
            task.loss(model, batch).backward()
            gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
            if settings.max_norm is not None:
                norm = torch.sqrt(sum((g**2).sum() for g in gradients.values()))
                gradients = {name: g * min(1.0, settings.max_norm / float(norm)) for name, g in gradients.items()}
            with torch.no_grad():
                for name, p in model.named_parameters():
                    change = gradients[name] + settings.weight_decay * p
                    velocity[name] = change if steps == 0 else settings.momentum * velocity[name] + change
                    p -= settings.schedule(steps) * velocity[name]
            if settings.ema_decay is not None:
                for name, tensor in model.state_dict().items():
                    decayed = settings.ema_decay * average[name] + (1 - settings.ema_decay) * tensor
                    average[name] = decayed if tensor.is_floating_point() else tensor.clone()
            history.append({name: p.detach().clone() for name, p in model.named_parameters()})
            steps += 1
    return history, average


def literal_adamw(model, task, settings, part):
    """The weights after the last step: moments with bias correction, ε = 1e-8, decay decoupled from the gradient."""
    first, second = settings.betas
    parameters, steps = list(model.parameters()), 0
    m, v = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    for epoch in range(settings.epochs):
        for batch in task.batches(epoch, 0, part):
            gradients = torch.autograd.grad(task.loss(model, batch), parameters)
            rate = settings.schedule(steps)
            steps += 1
            with torch.no_grad():
                for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
                    m[i] = first * m[i] + (1 - first) * g
                    v[i] = second * v[i] + (1 - second) * g**2
                    direction = m[i] / (1 - first**steps) / ((v[i] / (1 - second**steps)).sqrt() + 1e-8)
                    p -= rate * (direction + settings.weight_decay * p)
    return parameters
