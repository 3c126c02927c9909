"""Modules, with the shapes that they refuse."""
import types

from torch import Tensor
from torch.nn import functional


class Module:
    def children(self):
        for value in vars(self).values():
            yield from value if isinstance(value, list) else [value] if isinstance(value, Module) else []

    def parameters(self):
        yield from (value for value in vars(self).values() if isinstance(value, Tensor) and value.requires_grad)
        for child in self.children():
            yield from child.parameters()

    def to(self, device):
        for parameter in self.parameters():
            parameter.device = device
        return self

    def __call__(self, *arguments):
        return self.forward(*arguments)


def parameter(*shape):
    return Tensor(shape, requires_grad=True)


class Linear(Module):
    def __init__(self, columns_in, columns_out):
        self.weight, self.bias = parameter(columns_out, columns_in), parameter(columns_out)

    def forward(self, x):
        return functional.linear(x, self.weight)


class LayerNorm(Module):
    def __init__(self, width):
        self.weight, self.bias = parameter(width), parameter(width)

    def forward(self, x):
        return x + self.bias


class Embedding(Module):
    def __init__(self, rows, width):
        self.weight = parameter(rows, width)

    def forward(self, ids):
        assert ids.dtype == "int64" and ids.device == self.weight.device, (ids.dtype, ids.device, self.weight.device)
        return self.weight.like([*ids.shape, self.weight.shape[1]])


class ModuleList(Module):
    def __init__(self, modules):
        self.modules = list(modules)

    def __iter__(self):
        return iter(self.modules)


def normal(weight, std):
    assert isinstance(weight, Tensor) and std > 0


def clip_grad_norm(parameters, most):
    assert list(parameters) and most > 0


init = types.SimpleNamespace(normal_=normal)
utils = types.SimpleNamespace(clip_grad_norm_=clip_grad_norm)
