"""TEN in plain PyTorch, written from its formulas: what the family ten is compared with.

A loop over the tokens of a text, complex numbers as they are, autograd; nothing of Trainwright's C++, nor of the modeling file
that checkpoints carry. Weights come from a checkpoint in Hugging Face's layout, or from `random_weights`.

  c_t = lambda c_{t-1} + gamma u_t        of each eigenstate; u from the input projection, memory and convolution
  x  += sigmoid(W_g xn + b_g) * W_out (R c)                   xn = norm(x)
  x  += the same of cells that see means of 1, 2, 4 ... tokens, with a norm of their own (where there are windows)
  x  += W_down silu(W_up norm(x))

B texts, T tokens, D hidden size, K eigenstates. A document is a row: packed documents are rows of their own, and padding on the
right is seen by no token before it.
"""
import json
import math
import os

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional as F

IGNORE = -100
LARGEST_LOG_MODULUS = -1e-6


def complex_of(parts_btz):
    """[..., 2K], the real parts and then the imaginary ones, as complex numbers [..., K]."""
    real, imaginary = parts_btz.chunk(2, dim=-1)
    return torch.complex(real, imaginary)


def parts_of(c_btk):
    return torch.cat((c_btk.real, c_btk.imag), dim=-1)


def log_modulus_and_angle(init, a, w):
    if init == "lru":
        log_modulus, angle = -torch.exp(a), torch.exp(w)
    else:
        log_modulus, angle = F.logsigmoid(a), w
    return log_modulus.clamp(max=LARGEST_LOG_MODULUS), angle


def recurrence(lambda_btk, b_btk):
    """c_t = lambda_t c_{t-1} + b_t from zero; lambda [K], too."""
    c_bk, rows = torch.zeros_like(b_btk[:, 0]), []
    for t in range(b_btk.shape[1]):
        c_bk = (lambda_btk if lambda_btk.dim() == 1 else lambda_btk[:, t]) * c_bk + b_btk[:, t]
        rows.append(c_bk)
    return torch.stack(rows, dim=1)


class Eigenstates(nn.Module):
    """The trained numbers of a diagonal recurrence, and the recurrence."""

    def __init__(self, config, eigenstates):
        super().__init__()
        self.init = config["init"]
        self.log_decay, self.frequency = (nn.Parameter(torch.zeros(eigenstates)) for _ in range(2))

    def scan(self, parts_btz, shift_btz=None):
        """The states [B, T, K]. shift: what is added to the two trained numbers, for each token."""
        b_btk = complex_of(parts_btz)
        log_modulus, angle = log_modulus_and_angle(self.init, self.log_decay, self.frequency)
        if self.init == "lru":  # by the decay that is trained, selective or not
            b_btk = b_btk * torch.sqrt(-torch.expm1(2 * log_modulus))
        if shift_btz is not None:
            shift_a, shift_w = shift_btz.chunk(2, dim=-1)
            log_modulus, angle = log_modulus_and_angle(self.init, self.log_decay + shift_a, self.frequency + shift_w)
        return recurrence(torch.polar(torch.exp(log_modulus), angle), b_btk)


class Weight(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))


class Memory(Weight):
    def __init__(self, eigenstates):
        super().__init__(eigenstates, eigenstates)
        self.gate = nn.Parameter(torch.zeros(1))


class Cell(Eigenstates):
    def __init__(self, config, layer):
        width, eigenstates, heads = config["hidden_size"], config["num_eigenstates"], config["num_heads"]
        super().__init__(config, eigenstates)
        self.in_proj = nn.Linear(width, 2 * eigenstates, bias=False)
        self.memory = Memory(eigenstates) if config["layer_memory"] and layer else None
        self.conv = Weight(2 * eigenstates, config["conv_kernel"]) if config["conv_kernel"] else None
        self.selective_proj = nn.Linear(width, 2 * eigenstates, bias=False) if config["selective"] else None
        self.coupling = Weight(heads, eigenstates // heads, eigenstates // heads)
        self.out_proj = nn.Linear(2 * eigenstates, width, bias=False)
        self.gate_proj = nn.Linear(width, width)

    def forward(self, xn_btd, below_btk):
        """(what is added to x, the states); below: the states of the layer below."""
        u_btz = self.in_proj(xn_btd)
        if self.memory is not None:
            u_btz = u_btz + torch.sigmoid(self.memory.gate) * parts_of(below_btk @ self.memory.weight.T.to(below_btk.dtype))
        if self.conv is not None:
            u_btz = F.silu(self.convolved(u_btz))
        shift_btz = None
        if self.selective_proj is not None:
            shift_a, shift_w = torch.tanh(self.selective_proj(xn_btd)).chunk(2, dim=-1)
            shift_btz = torch.cat((0.1 * shift_a, 0.05 * shift_w), dim=-1)
        c_btk = self.scan(u_btz, shift_btz)
        heads = len(self.coupling.weight)
        coupled = torch.einsum("hij,bthj->bthi", self.coupling.weight.to(c_btk.dtype), c_btk.unflatten(2, (heads, -1)))
        return torch.sigmoid(self.gate_proj(xn_btd)) * self.out_proj(parts_of(coupled.flatten(2))), c_btk

    def convolved(self, u_btz):
        """Tap j of a channel is the weight of what stood j tokens before; zero before the first."""
        length = u_btz.shape[1]
        return sum(self.conv.weight[:, j] * F.pad(u_btz, (0, 0, j, 0))[:, :length]
                   for j in range(self.conv.weight.shape[1]))


class WindowCell(Eigenstates):
    """A cell on the means of whole windows of `size` tokens; a token sees the last window that ends with it or before."""

    def __init__(self, config, size, eigenstates):
        super().__init__(config, eigenstates)
        self.size = size
        self.in_proj = nn.Linear(config["hidden_size"], 2 * eigenstates, bias=False)
        self.out_proj = nn.Linear(2 * eigenstates, config["hidden_size"], bias=False)

    def forward(self, xn_btd):
        length = xn_btd.shape[1]
        windows = length // self.size
        if windows == 0:
            return torch.zeros_like(xn_btd)
        means = xn_btd[:, :windows * self.size].unflatten(1, (windows, self.size)).mean(dim=2)
        seen = self.out_proj(parts_of(self.scan(self.in_proj(means))))
        last = [(t + 1) // self.size - 1 for t in range(length)]
        return torch.stack([seen[:, i] if i >= 0 else torch.zeros_like(seen[:, 0]) for i in last], dim=1)


class MultiScale(nn.Module):
    def __init__(self, config):
        super().__init__()
        sizes = config["windows"]
        self.cells = [WindowCell(config, size, config["num_eigenstates"] // len(sizes)) for size in sizes]
        for i, cell in enumerate(self.cells):
            self.add_module(str(i), cell)
        self.gate_proj = nn.Linear(config["hidden_size"], config["hidden_size"])

    def forward(self, xn_btd):
        return torch.sigmoid(self.gate_proj(xn_btd)) * sum(cell(xn_btd) for cell in self.cells)


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up_proj = nn.Linear(config["hidden_size"], config["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(config["intermediate_size"], config["hidden_size"], bias=False)

    def forward(self, xn_btd):
        return self.down_proj(F.silu(self.up_proj(xn_btd)))


class Layer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()

        def norm():
            return nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])

        self.cell_norm, self.cell = norm(), Cell(config, layer)
        self.multi_scale_norm, self.multi_scale = (norm(), MultiScale(config)) if config["windows"] else (None, None)
        self.mlp_norm, self.mlp = norm(), Mlp(config)

    def forward(self, x_btd, below_btk):
        update, c_btk = self.cell(self.cell_norm(x_btd), below_btk)
        x_btd = x_btd + update
        if self.multi_scale is not None:
            x_btd = x_btd + self.multi_scale(self.multi_scale_norm(x_btd))
        return x_btd + self.mlp(self.mlp_norm(x_btd)), c_btk


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config["num_hidden_layers"]))
        self.norm = nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])


class Ten(nn.Module):
    """The head is the embedding's matrix, unless it has one of its own. Parameters have the names that they have in files."""

    def __init__(self, config):
        super().__init__()
        self.config, self.ten = config, Body(config)
        self.lm_head = None if config["tie_word_embeddings"] else Weight(config["vocab_size"], config["hidden_size"])

    def forward(self, ids_bt):
        """The logits [B, T, vocabulary]."""
        x_btd, c_btk = self.ten.embed_tokens(ids_bt), None
        for layer in self.ten.layers:
            x_btd, c_btk = layer(x_btd, c_btk)
        return F.linear(self.ten.norm(x_btd), (self.lm_head or self.ten.embed_tokens).weight)


def rows_of(documents):
    """Documents (ids, labels) as rows, padded on the right: (ids, labels) [B, T]."""
    width = max(len(ids) for ids, _ in documents)
    ids_bt = torch.zeros(len(documents), width, dtype=torch.long)
    labels_bt = torch.full((len(documents), width), IGNORE)
    for row, (ids, labels) in enumerate(documents):
        ids_bt[row, :len(ids)] = torch.as_tensor(ids)
        labels_bt[row, :len(labels)] = torch.as_tensor(labels)
    return ids_bt, labels_bt


def packed(ids, starts):
    """The documents of packed ids, each from starts[i] to starts[i + 1]; a document predicts its own tokens."""
    return [(ids[begin:end], torch.cat((ids[begin + 1:end], torch.tensor([IGNORE]))))
            for begin, end in zip(starts, starts[1:])]


def loss_sum(model, documents):
    """Summed cross-entropy of documents (ids, labels)."""
    ids_bt, labels_bt = rows_of(documents)
    return F.cross_entropy(model(ids_bt).flatten(0, 1), labels_bt.flatten(), ignore_index=IGNORE, reduction="sum")


@torch.no_grad()
def random_weights(model, generator):
    """Large enough that every term of the maths shows; decays from short memory to long."""
    lru = model.config["init"] == "lru"
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        place = torch.rand(parameter.shape, generator=generator)
        if name.endswith("log_decay"):
            drawn = torch.log(-torch.log(0.3 + 0.699 * place)) if lru else -3 + 7 * place
        elif name.endswith("frequency"):
            drawn = torch.log(0.01 + 2 * math.pi * place) if lru else -7 + 14 * place
        elif name.endswith("norm.weight"):
            drawn = 1 + 0.3 * drawn
        else:
            drawn = 0.3 * drawn
        parameter.copy_(drawn)


def load(folder):
    """The model of a checkpoint folder, in fp32."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        model = Ten(json.load(file))
    tensors = safetensors.torch.load_file(os.path.join(folder, "model.safetensors"))
    if model.lm_head is None:
        tensors.pop("lm_head.weight", None)
    model.load_state_dict(tensors)
    return model
