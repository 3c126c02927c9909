"""What scripts/gpu_check/torch_*.py use of PyTorch, without computing: tensors have shapes, a type and a device, and no elements.

It holds its callers to the shapes, types and devices that PyTorch would refuse otherwise. What they called and which of their
lines ran goes to the file that TRAINWRIGHT_STAND_IN_LOG names (record.py).
"""
import math
import types

from torch.record import record

bfloat16, float32, int32, int64 = "bfloat16", "float32", "int32", "int64"


class Tensor:
    def __init__(self, shape, dtype=float32, device="cpu", requires_grad=False, values=None):
        self.shape, self.dtype, self.device = tuple(shape), dtype, str(device)
        self.requires_grad, self.values = requires_grad, values
        assert all(isinstance(size, int) and size > 0 for size in self.shape), self.shape

    def like(self, shape, dtype=None):
        return Tensor(shape, dtype or self.dtype, self.device)

    def numel(self):
        return math.prod(self.shape)

    def view(self, *sizes):
        known = math.prod(size for size in sizes if size != -1)
        sizes = [self.numel() // known if size == -1 else size for size in sizes]
        assert math.prod(sizes) == self.numel(), (self.shape, sizes)
        return self.like(sizes)

    reshape = view

    def flatten(self, start=0, end=-1):
        end %= len(self.shape)
        return self.like([*self.shape[:start], math.prod(self.shape[start:end + 1]), *self.shape[end + 1:]])

    def transpose(self, a, b):
        sizes = list(self.shape)
        sizes[a], sizes[b] = sizes[b], sizes[a]
        return self.like(sizes)

    def t(self):
        assert len(self.shape) == 2, self.shape
        return self.transpose(0, 1)

    def chunk(self, count, dim):
        assert self.shape[dim] % count == 0, (self.shape, count)
        return [self.like([*self.shape[:dim], self.shape[dim] // count, *self.shape[dim + 1:]])] * count

    def float(self):
        return self.like(self.shape, float32)

    def detach(self):
        return self

    def backward(self):
        assert self.shape == (), self.shape
        record("backward")

    def __getitem__(self, places):
        return self.like([len(range(size)[place]) for size, place in zip(self.shape, places, strict=True)])

    def __matmul__(self, other):
        assert len(self.shape) == len(other.shape) == 2 and self.shape[1] == other.shape[0], (self.shape, other.shape)
        agree(self, other, types_too=True)
        return self.like([self.shape[0], other.shape[1]])

    def __add__(self, other):
        """Of one shape, or the other has the last dimensions alone."""
        assert self.shape[len(self.shape) - len(other.shape):] == other.shape, (self.shape, other.shape)
        agree(self, other)
        return self.like(self.shape)

    def __float__(self):
        assert self.shape == (), self.shape
        return 1.0


def agree(*tensors, types_too=False):
    assert len({tensor.device for tensor in tensors}) == 1, [tensor.device for tensor in tensors]
    assert not types_too or len({tensor.dtype for tensor in tensors}) == 1, [tensor.dtype for tensor in tensors]


def randn(*shape, device, dtype, requires_grad=False):
    return Tensor(shape[0] if isinstance(shape[0], tuple) else shape, dtype, device, requires_grad)


def randn_like(tensor):
    return tensor.like(tensor.shape)


def randint(end, shape, device):
    assert end > 0
    return Tensor(shape, int64, device)


def arange(end, device):
    return Tensor((end,), int64, device)


def tensor(values, dtype, device):
    return Tensor((len(values),), dtype, device, values=list(values))


def manual_seed(seed):
    assert isinstance(seed, int)


def set_float32_matmul_precision(precision):
    assert precision in ("highest", "high", "medium")


class autocast:
    def __init__(self, kind, dtype):
        assert kind in ("cpu", "cuda") and dtype == bfloat16
        record(f"autocast {kind}")

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def compile(model):  # torch's name
    record("compile")
    return model


class AdamW:
    def __init__(self, parameters, lr, betas, weight_decay, fused):
        self.parameters = list(parameters)
        assert self.parameters and 0 < lr < 1 and len(betas) == 2 and weight_decay >= 0 and isinstance(fused, bool)

    def step(self):
        record("AdamW.step")

    def zero_grad(self, set_to_none):
        assert isinstance(set_to_none, bool)


def grad(out, inputs, d_out):
    assert out.shape == d_out.shape and all(each.requires_grad for each in inputs), (out.shape, d_out.shape)
    agree(out, d_out, *inputs, types_too=True)
    return [each.like(each.shape) for each in inputs]


def packed_attention(q, k, v, starts_q, starts_k, longest_q, longest_k, dropout, causal, debug):
    """aten::_flash_attention_forward of rows of documents."""
    assert q.shape[0] == k.shape[0] and q.shape[2] == k.shape[2] and k.shape == v.shape, (q.shape, k.shape, v.shape)
    assert q.shape[1] % k.shape[1] == 0, (q.shape, k.shape)
    agree(q, k, v, types_too=True)
    for starts, longest in ((starts_q, longest_q), (starts_k, longest_k)):
        agree(q, starts)
        lengths = [end - start for start, end in zip(starts.values, starts.values[1:])]
        assert starts.dtype == int32 and starts.values[0] == 0 and starts.values[-1] == q.shape[0], starts.values
        assert min(lengths) > 0 and max(lengths) == longest, (lengths, longest)
    assert dropout == 0.0 and causal is True and debug is False
    record(f"packed attention of {len(lengths)}, {q.shape[1]} heads, {k.shape[1]} of keys")
    return q.like(q.shape), *[None] * 4


def preferred_blas_library(name):
    assert name in ("cublas", "cublaslt")
    record(f"blas {name}")


optim = types.SimpleNamespace(AdamW=AdamW)
autograd = types.SimpleNamespace(grad=grad)
ops = types.SimpleNamespace(aten=types.SimpleNamespace(_flash_attention_forward=packed_attention))
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(preferred_blas_library=preferred_blas_library))
cuda = types.SimpleNamespace(synchronize=lambda: record("synchronize"), max_memory_allocated=lambda: 1 << 20)
