"""Functions, with the shapes that they refuse."""
from torch import agree
from torch.nn import attention
from torch.record import record


def linear(x, weight):
    assert x.shape[-1] == weight.shape[1], (x.shape, weight.shape)
    agree(x, weight)
    return x.like([*x.shape[:-1], weight.shape[0]])


def gelu(x, approximate):
    assert approximate in ("none", "tanh")
    return x.like(x.shape)


def cross_entropy(logits, targets):
    assert len(logits.shape) == 2 and logits.shape[:1] == targets.shape, (logits.shape, targets.shape)
    agree(logits, targets)
    return logits.like([])


def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa=False):
    assert q.shape[:1] == k.shape[:1] and q.shape[2:] == k.shape[2:] and k.shape == v.shape, (q.shape, k.shape, v.shape)
    heads, kv_heads = q.shape[1], k.shape[1]
    assert heads % kv_heads == 0 and (enable_gqa or heads == kv_heads) and is_causal is True, (heads, kv_heads)
    agree(q, k, v, types_too=True)
    if enable_gqa and attention.chosen == attention.SDPBackend.EFFICIENT_ATTENTION:
        raise RuntimeError("No available kernel. Aborting execution.")
    record(f"{attention.chosen} attention, {heads} heads, {kv_heads} of keys")
    return q.like(q.shape)
