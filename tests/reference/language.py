"""The LSTM (arXiv:1409.2329), its training, and the transformer, written out word by word: slow, only equations."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_forward(weights, words):
    """Logits of the next word after each of ``words``, one row, by the LSTM's equations in float64.

    i, f, o = σ(·), g = tanh(·), c ← f ⊙ c + i ⊙ g, h ← o ⊙ tanh(c), each of W x + b + U h + d.
    """
    w = {name: value.detach().double().numpy() for name, value in weights.items()}
    width = w["embedding.weight"].shape[1]
    h, c = np.zeros((2, width)), np.zeros((2, width))
    logits = []
    for word in words:
        x = w["embedding.weight"][word]
        for layer in (0, 1):
            gates = w[f"lstm.weight_ih_l{layer}"] @ x + w[f"lstm.bias_ih_l{layer}"]
            gates = gates + w[f"lstm.weight_hh_l{layer}"] @ h[layer] + w[f"lstm.bias_hh_l{layer}"]
            i, f, g, o = np.split(gates, 4)
            c[layer] = sigmoid(f) * c[layer] + sigmoid(i) * np.tanh(g)
            h[layer] = x = sigmoid(o) * np.tanh(c[layer])
        logits.append(w["decoder.weight"] @ x + w["decoder.bias"])
    return np.array(logits)


def normalised(x, weight, bias):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * weight + bias


def transformer_forward(weights, text, num_heads):
    """Logits of the next byte after each byte of ``text``, one row, in float64: one position and one head at a time."""
    w = {name: value.detach().double().numpy() for name, value in weights.items()}
    stream = [w["embedding.weight"][byte] + w["position.weight"][place] for place, byte in enumerate(text)]
    width = len(stream[0])
    own = width // num_heads
    for block in sorted({name.split(".")[1] for name in w if name.startswith("blocks.")}):
        part = {name.removeprefix(f"blocks.{block}."): w[name] for name in w if name.startswith(f"blocks.{block}.")}
        joint = [
            part["attention.joint.weight"] @ normalised(x, part["norm1.weight"], part["norm1.bias"]) for x in stream
        ]
        seen = []
        for place in range(len(text)):
            heads = []
            for head in range(num_heads):
                query, key, value = (slice(i * width + head * own, i * width + (head + 1) * own) for i in range(3))
                scores = np.array([joint[place][query] @ joint[past][key] for past in range(place + 1)]) / own**0.5
                shares = np.exp(scores) / np.exp(scores).sum()
                heads.append(sum(share * joint[past][value] for past, share in enumerate(shares)))
            seen.append(part["attention.project.weight"] @ np.concatenate(heads))
        stream = [x + y for x, y in zip(stream, seen, strict=True)]
        for place, x in enumerate(stream):
            hidden = part["expand.weight"] @ normalised(x, part["norm2.weight"], part["norm2.bias"])
            gelu = hidden * np.array([0.5 * (1 + math.erf(h / 2**0.5)) for h in hidden])
            stream[place] = x + part["project.weight"] @ gelu
    return np.array([w["decoder.weight"] @ normalised(x, w["norm.weight"], w["norm.bias"]) for x in stream])


def train_plainly(model, text, rates, batch_size, unroll, max_norm):
    """SGD over the text in order, rates one a step: sum over the window, mean over rows, clipped, state carried on."""
    length = len(text) // batch_size
    rows = torch.stack([text[i * length : (i + 1) * length] for i in range(batch_size)])
    per_epoch = (length - 1) // unroll
    parameters = list(model.parameters())
    for step, rate in enumerate(rates):
        begin = step % per_epoch * unroll
        if begin == 0:
            state = model.initial_state(batch_size)
        for parameter in parameters:
            parameter.grad = None
        total = 0.0
        for column in range(begin, begin + unroll):
            logits, state = model(rows[:, column : column + 1], state)
            total = total + F.cross_entropy(logits[:, 0], rows[:, column + 1])
        total.backward()
        state = type(state)(*(part.detach() for part in state))
        norm = torch.sqrt(sum((p.grad**2).sum() for p in parameters)).item()
        with torch.no_grad():
            for parameter in parameters:
                parameter -= rate * min(1.0, max_norm / norm) * parameter.grad
