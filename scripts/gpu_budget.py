#!/usr/bin/env python3
"""What a training step on a GPU should take, part by part, before any GPU has run it.

usage: scripts/gpu_budget.py [--gemm-tflops X] [--bandwidth-tb-s X] [--memory-gb X] [--residual-stream TYPE] [--json]

  --gemm-tflops X     what a GEMM in bf16 reaches on the GPU (default: 700, a guess; `gpu-probe --json` measures it)
  --bandwidth-tb-s X  what a copy reaches (default: 2.8 of an H100's published 3.35, a guess; likewise)
  --memory-gb X       what is free on the GPU before the model is made (default: 80), by which the head is cut into slices
  --residual-stream TYPE  fp32 (default) or bf16, as of `train`; that of ten is fp32
  --json              one JSON object a model instead of a table

For each part of a step: FLOPs, the bytes that the maths must move at least ("least"), the bytes that the code of today moves
("today"), and by both the time max(FLOPs / GEMM rate, bytes / bandwidth). Launches, waits and gaps between kernels are not
in it, so a measured step is longer; where one part is much longer than here, that part is to be looked at.

Convention of utilisation: 6 FLOPs a weight that multiplies and token (forward 2, backward 4; the embedding's table counts as
the head's where they are tied, and once) and causal attention as half of the square, 6 T D a token and layer; nothing for what
is computed again; over 989 TFLOP/s, which NVIDIA states for dense bf16 of an H100.

Numbers that a token takes in memory: the residual stream (unless asked for in bf16) and the norms' statistics fp32, all else bf16; weights, gradients and
moments fp32, with a bf16 copy of the weights that is written by the optimizer. Of the first micro-batch of a step products
write the gradients of weights, of the others they add to them.
"""
import argparse
import dataclasses
import json
import math
import sys

PEAK_TFLOPS = 989
FP32, BF16 = 4, 2
STREAM_BYTES = {"fp32": FP32, "bf16": BF16}
# Of lib/nn/loss/head_slices.cc.
LEAST_SLICE_LOGITS = 32 * 2**20
SHARE_OF_FREE = 8
VOCABULARY_MULTIPLE = 128


@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes of a model and of its step; heads share keys and values in groups: kv is the width of the keys."""
    name: str
    width: int
    layers: int
    inner: int  # width between the two products of the MLP
    vocabulary: int
    tokens: int  # of a micro-batch
    sequence: int
    micro_batches: int = 1
    kv: int = 0
    gated: bool = False
    eigenstates: int = 0  # of the family ten, which has them in place of attention

    @property
    def mixer_weights(self):
        """Of a layer's attention, or of the cell of a TEN: input, output and gate."""
        if self.eigenstates:
            return 4 * self.eigenstates * self.width + self.width**2
        return 2 * self.width**2 + 2 * self.width * self.kv

    @property
    def mlp_weights(self):
        return (3 if self.gated else 2) * self.width * self.inner

    @property
    def head_weights(self):
        return self.vocabulary * self.width

    @property
    def multiplying_weights(self):
        return self.layers * (self.mixer_weights + self.mlp_weights) + self.head_weights

    @property
    def parameters(self):
        """Those above and, where the head has weights of its own, the embedding's table."""
        return self.multiplying_weights + (self.head_weights if self.gated else 0)

    @property
    def attention_flops_a_token(self):
        return 0 if self.eigenstates else 6 * self.layers * self.sequence * self.width

    @property
    def model_flops(self):
        """Of a step, by the convention."""
        return self.tokens * self.micro_batches * (6 * self.multiplying_weights + self.attention_flops_a_token)


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    flops: float
    least_bytes: float
    today_bytes: float
    first_saves: float = 0  # bytes of these that the first micro-batch of a step does not read

    def of_step(self, micro_batches):
        return Part(self.name, self.flops * micro_batches, self.least_bytes * micro_batches - self.first_saves,
                    self.today_bytes * micro_batches - self.first_saves)

    def seconds(self, least, options):
        moved = self.least_bytes if least else self.today_bytes
        return max(self.flops / (options.gemm_tflops * 1e12), moved / (options.bandwidth_tb_s * 1e12))


def gemm(name, model, weights, inputs, outputs):
    """Forward, gradient of the inputs and of the weights, of all layers; inputs and outputs in numbers a token."""
    rows = model.tokens * model.layers
    moved = rows * 3 * (inputs + outputs) * BF16 + model.layers * weights * (2 * BF16 + 2 * FP32)
    return Part(name, 6 * weights * rows, moved, moved, first_saves=model.layers * weights * FP32)


def norms(model, stream=FP32):
    """Two a layer. Forward: residual and update in, sum and normed out; backward: gradient, input, residual gradient. Today the
    backward pass normalises again, and beside a stream in fp32 the gradient is rounded for the next GEMMs."""
    rows = 2 * model.layers * model.tokens * model.width
    forward, backward, again = 2 * stream + 2 * BF16, BF16 + 3 * stream, stream + BF16
    rounded = BF16 if stream == FP32 else 0
    return Part("norms and residual stream", 0, rows * (forward + backward), rows * (forward + again + backward + rounded))


def activation(model):
    """The backward pass reads what the forward pass read, and the gradient, and writes in place."""
    numbers = model.inner * (2 if model.gated else 1)
    rows = model.layers * model.tokens
    moved = rows * BF16 * (numbers + model.inner + 2 * numbers + model.inner)
    return Part("activation", 0, moved, moved)


def attention(model):
    """2 products forward, 5 backward, of half the square. Today rotary positions are turned in place in the forward pass, and
    the gradients that the libraries return are copied to where the next product reads them, all at once and turned back on
    the way; the output is taken as it is returned."""
    rows = model.layers * model.tokens
    qkv = model.width + 2 * model.kv
    moved = rows * BF16 * (3 * qkv + 5 * model.width)
    turned = rows * BF16 * 2 * (model.width + model.kv) if model.gated else 0
    copied = rows * BF16 * 2 * qkv
    return Part("attention", 3.5 * 2 * model.sequence * model.width * rows, moved, moved + turned + copied)


def scan(model):
    """Rows of 2 K numbers. Today the ends of the chunks read them once more each way, the backward pass states besides."""
    rows = model.layers * model.tokens * 2 * model.eigenstates * BF16
    return Part("scan", 0, 5 * rows, 9 * rows)


def head_slices(model, padded, options):
    """An eighth of what weights, gradients, moments and the copy in bf16 leave free holds the logits of a slice."""
    free = options.memory_gb * 1e9 - model.parameters * (4 * FP32 + BF16)
    most = max(LEAST_SLICE_LOGITS, free / SHARE_OF_FREE / BF16)
    return max(1, math.ceil(model.tokens * padded / most))


def head(model, options):
    """Logits, their loss and gradient in slices of rows; each slice adds to the whole gradient of the weights. Where the
    vocabulary is padded, a padded copy of the weights is made in each micro-batch."""
    padded = math.ceil(model.vocabulary / VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    logits, weights = model.tokens * model.vocabulary, model.head_weights
    slices = head_slices(model, padded, options)
    rows = 3 * model.tokens * model.width * BF16
    least = rows + 2 * weights * BF16 + 2 * weights * FP32 + 2 * logits * BF16
    today = rows + 2 * slices * weights * BF16 + 2 * slices * weights * FP32 + 6 * model.tokens * padded * BF16
    if padded > model.vocabulary:
        today += 2 * weights * BF16
    return Part("head and loss", 6 * weights * model.tokens, least, today, first_saves=weights * FP32)


def embedding(model):
    numbers = model.tokens * model.width
    return Part("embedding", 0, numbers * (FP32 + BF16 + 3 * FP32), numbers * (FP32 + FP32 + 4 * FP32))


def optimizer(model):
    """AdamW reads and writes weight and moments, reads the gradient, writes the copy; the norm reads gradients. Only those of
    a table that no product writes are zeroed."""
    least = model.parameters * (7 * FP32 + BF16 + FP32)
    return Part("optimizer, norm and zeroing", 0, least, least + (model.head_weights * FP32 if model.gated else 0))


def parts_of(model, options):
    """Of a step: those of a micro-batch as often as there are, and the optimizer's once."""
    mixer = ([gemm("cell's GEMMs", model, model.mixer_weights, 2 * model.width + 2 * model.eigenstates,
                   2 * model.width + 2 * model.eigenstates), scan(model)] if model.eigenstates else
             [gemm("attention's GEMMs", model, model.mixer_weights, 2 * model.width, 2 * model.width + 2 * model.kv),
              attention(model)])
    stream = FP32 if model.eigenstates else STREAM_BYTES[options.residual_stream]
    of_each = [embedding(model), norms(model, stream), *mixer,
               gemm("MLP's GEMMs", model, model.mlp_weights, model.width + model.inner,
                    model.inner * (2 if model.gated else 1) + model.width),
               activation(model), head(model, options)]
    return [part.of_step(model.micro_batches) for part in of_each] + [optimizer(model)]


MODELS = [
    Model("GPT-2 124M, 64 x 1,024", 768, 12, 3072, 50257, 65536, 1024, kv=768),
    Model("GPT-2 1.5B, 8 x 1,024, 8 micro-batches", 1600, 48, 6400, 50257, 8192, 1024, micro_batches=8, kv=1600),
    Model("4 layers of a Llama 8B, 2 x 8,192", 4096, 4, 14336, 128256, 16384, 8192, kv=1024, gated=True),
    Model("ten-small-32k, 2 x 32,768", 1024, 8, 4096, 50257, 65536, 32768, eigenstates=128),
]


def budget(model, options):
    parts = parts_of(model, options)
    total = {kind: sum(part.seconds(kind == "least", options) for part in parts) for kind in ("least", "today")}
    return {"model": model.name, "model_flops": model.model_flops,
            "parts": [{"part": part.name, "flops": part.flops, "least_bytes": part.least_bytes, "today_bytes": part.today_bytes,
                       "least_s": part.seconds(True, options), "today_s": part.seconds(False, options)} for part in parts],
            "least_s": total["least"], "today_s": total["today"],
            "utilisation_least": model.model_flops / total["least"] / PEAK_TFLOPS / 1e12,
            "utilisation_today": model.model_flops / total["today"] / PEAK_TFLOPS / 1e12}


def table(result):
    lines = [f"## {result['model']}", "", "| part | TFLOP | GB least | GB today | ms least | ms today |",
             "|---|---|---|---|---|---|"]
    for part in result["parts"]:
        lines.append(f"| {part['part']} | {part['flops'] / 1e12:.2f} | {part['least_bytes'] / 1e9:.2f} | "
                     f"{part['today_bytes'] / 1e9:.2f} | {1e3 * part['least_s']:.2f} | {1e3 * part['today_s']:.2f} |")
    lines += [f"| all | {sum(part['flops'] for part in result['parts']) / 1e12:.2f} | | | {1e3 * result['least_s']:.2f} | "
              f"{1e3 * result['today_s']:.2f} |", "",
              f"At most {result['utilisation_least']:.1%} of {PEAK_TFLOPS} TFLOP/s by the roofline, "
              f"{result['utilisation_today']:.1%} as the code moves data today.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemm-tflops", type=float, default=700)
    parser.add_argument("--bandwidth-tb-s", type=float, default=2.8)
    parser.add_argument("--memory-gb", type=float, default=80)
    parser.add_argument("--residual-stream", choices=STREAM_BYTES, default="fp32")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not (options.gemm_tflops > 0 and options.bandwidth_tb_s > 0 and options.memory_gb > 0):
        parser.error("rates and memory are above 0")
    results = [budget(model, options) for model in MODELS]
    if options.json:
        print("\n".join(map(json.dumps, results)))
        return
    print(f"GEMM {options.gemm_tflops:g} TFLOP/s, memory {options.bandwidth_tb_s:g} TB/s, {options.memory_gb:g} GB free: "
          f"not measured unless said. Residual stream in {options.residual_stream}.\n")
    print("\n".join(map(table, results)))


if __name__ == "__main__":
    sys.exit(main())
