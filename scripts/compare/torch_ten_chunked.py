"""The recurrence of the family ten in chunks, in PyTorch, as a careful user writes it for speed; from systems' formulas alone.

  c_t = lambda c_{t-1} + b_t, chunks of Q tokens, h the state before a chunk:
  c_{j} = sum_{s <= j} lambda^{j-s} b_s + lambda^{j+1} h      in a chunk: a lower triangular Toeplitz product of each channel
  h'    = lambda^Q h + U                                       between chunks: by doubling, log2 of their number

Complex numbers are pairs of real ones, so that torch.compile makes code of all of it, and the products are one batched matrix
product of real numbers over the channels. A decay of all tokens only. Autograd gives the backward pass.
"""
import torch
from torch.nn import functional as F

import torch_ten

CHUNK = 64


def powers(log_modulus_k, angle_k, exponents_j):
    """(real, imaginary) [K, J] of lambda^j."""
    modulus = torch.exp(log_modulus_k[:, None] * exponents_j)
    angles = torch.remainder(angle_k[:, None] * exponents_j, 2 * torch.pi)
    return modulus * torch.cos(angles), modulus * torch.sin(angles)


def shifted(x, by):
    """Along the second dimension, by so many places to the end, zeros before them."""
    return F.pad(x, (0, 0, by, 0))[:, :x.shape[1]]


def states_before(end_re, end_im, log_modulus_k, angle_k, chunk):
    """From what chunks [B, N, K] end with from zero, the states before them: doubling over the chunks."""
    count, by = end_re.shape[1], 1
    while by < count:
        power_re, power_im = powers(log_modulus_k, angle_k, torch.full((1,), float(by * chunk)))
        power_re, power_im = power_re[:, 0], power_im[:, 0]
        re, im = shifted(end_re, by), shifted(end_im, by)
        end_re, end_im = end_re + power_re * re - power_im * im, end_im + power_re * im + power_im * re
        by *= 2
    return shifted(end_re, 1), shifted(end_im, 1)


def chunked_scan(log_modulus_k, angle_k, b_btz, chunk=CHUNK):
    """c [B, T, 2K] of b [B, T, 2K], real parts and then imaginary ones."""
    batch, tokens, width = b_btz.shape
    channels = width // 2
    padded = F.pad(b_btz, (0, 0, 0, -tokens % chunk))
    count = padded.shape[1] // chunk
    # [K, B N, 2 Q]: a row holds a chunk's real parts, then its imaginary ones.
    rows = padded.reshape(batch, count, chunk, 2, channels).permute(4, 0, 1, 3, 2).reshape(channels, batch * count, 2 * chunk)
    re, im = powers(log_modulus_k, angle_k, torch.arange(chunk + 1, dtype=torch.float32))
    lag = torch.arange(chunk)[None, :] - torch.arange(chunk)[:, None]  # of the one that is read to the one that is made
    seen, place = (lag >= 0).to(re.dtype), lag.clamp(min=0)
    toeplitz_re, toeplitz_im = re[:, place] * seen, im[:, place] * seen
    toeplitz = torch.cat((torch.cat((toeplitz_re, toeplitz_im), 2), torch.cat((-toeplitz_im, toeplitz_re), 2)), 1)
    within = torch.bmm(rows, toeplitz).view(channels, batch, count, 2, chunk).permute(1, 2, 4, 3, 0)  # [B, N, Q, 2, K]
    before_re, before_im = states_before(within[:, :, -1, 0], within[:, :, -1, 1], log_modulus_k, angle_k, chunk)
    power_re, power_im = re[:, 1:].T, im[:, 1:].T  # [Q, K]
    before_re, before_im = before_re[:, :, None], before_im[:, :, None]
    c_re = within[:, :, :, 0] + power_re * before_re - power_im * before_im
    c_im = within[:, :, :, 1] + power_re * before_im + power_im * before_re
    return torch.cat((c_re, c_im), 3).reshape(batch, count * chunk, width)[:, :tokens]


def scan_in_chunks(self, parts_btz):
    """torch_ten.Eigenstates.scan by chunked_scan: parts in, parts out."""
    log_modulus, angle = torch_ten.log_modulus_and_angle(self.init, self.log_decay, self.frequency)
    if self.init == "lru":
        gamma = torch.sqrt(-torch.expm1(2 * log_modulus))
        parts_btz = parts_btz * torch.cat((gamma, gamma))
    return chunked_scan(log_modulus, angle, parts_btz)


def cell_in_parts(self, xn_btd, below_btz):
    """torch_ten.Cell.forward without a complex number: what couples eigenstates is real, of both parts alike."""
    assert self.selective_proj is None, "a decay of all tokens"
    u_btz = self.in_proj(xn_btd)
    if self.memory is not None:
        below = below_btz.unflatten(2, (2, -1)) @ self.memory.weight.T
        u_btz = u_btz + torch.sigmoid(self.memory.gate) * below.flatten(2)
    if self.conv is not None:
        u_btz = F.silu(self.convolved(u_btz))
    c_btz = scan_in_chunks(self, u_btz)
    coupled = torch.einsum("hij,btphj->btphi", self.coupling.weight, c_btz.unflatten(2, (2, len(self.coupling.weight), -1)))
    return torch.sigmoid(self.gate_proj(xn_btd)) * self.out_proj(coupled.flatten(2)), c_btz


def load(folder):
    """The model of a checkpoint folder, its recurrences in chunks."""
    torch_ten.Cell.forward = cell_in_parts
    return torch_ten.load(folder)
