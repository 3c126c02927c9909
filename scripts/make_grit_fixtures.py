#!/usr/bin/env python3
"""Makes tests/objective/fixtures/grit: a tiny Llama, records, and what one step of GRIT on them comes to: every loss and the
gradient of every parameter, from the formulas, in float64, with NumPy and autograd's derivatives.

usage: make_grit_fixtures.py OUTPUT_DIR      (needs numpy and autograd; made with autograd 1.9.1)

  config.json, model.safetensors   the model, as transformers has it
  records.json                     {"temperature", "group_size", "projection", "contrastive": [{"query": TEXT, "pos":
                                   [TEXT], "neg": [TEXT]}], "generative": [{"ids", "predicted"}]}, with TEXT
                                   {"ids", "first_pooled"}
  projection.safetensors           linear.weight, linear.bias of the cases with a projection
  expected.safetensors             CASE/loss, CASE/vectors.queries, CASE/vectors.passages, CASE/gradient.<parameter>

A case is embedding.<pooling>.<bidirectional|causal>, embedding.projection or generative.<mixed|token|sample|prefixlm>. The
loss of unified training is the sum of two, and so is its gradient. scripts/compare/grit_parity.py has PyTorch compute the
same files' losses and gradients.
"""
import argparse
import json
import pathlib
import random

import autograd.numpy as np
import numpy
from autograd import value_and_grad

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, HEAD = 40, 16, 24, 2, 2, 1, 8
QUERIES, GROUP, TEMPERATURE, PROJECTION = 6, 2, 0.1, 10
NORM_EPSILON, ROPE_THETA = 1e-5, 10000.0
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH,
          "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
          "num_key_value_heads": KEY_HEADS, "head_dim": HEAD, "max_position_embeddings": 64, "rms_norm_eps": NORM_EPSILON,
          "rope_theta": ROPE_THETA, "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
          "torch_dtype": "float32"}


# --- Model and records -------------------------------------------------------------------------------------------------


def make_weights():
    """fp32 numbers in float64, large enough that every term of the maths shows."""
    rng = numpy.random.RandomState(11)

    def drawn(*shape, mean=0.0):
        return (mean + 0.3 * rng.standard_normal(shape)).astype(numpy.float32).astype(numpy.float64)

    weights = {"model.embed_tokens.weight": drawn(VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        own = {"input_layernorm": drawn(WIDTH, mean=1.0), "self_attn.q_proj": drawn(HEADS * HEAD, WIDTH),
               "self_attn.k_proj": drawn(KEY_HEADS * HEAD, WIDTH), "self_attn.v_proj": drawn(KEY_HEADS * HEAD, WIDTH),
               "self_attn.o_proj": drawn(WIDTH, HEADS * HEAD), "post_attention_layernorm": drawn(WIDTH, mean=1.0),
               "mlp.gate_proj": drawn(INNER, WIDTH), "mlp.up_proj": drawn(INNER, WIDTH), "mlp.down_proj": drawn(WIDTH, INNER)}
        weights |= {f"model.layers.{layer}.{name}.weight": value for name, value in own.items()}
    weights |= {"model.norm.weight": drawn(WIDTH, mean=1.0), "lm_head.weight": drawn(VOCABULARY, WIDTH)}
    projection = {"embedding_projection.weight": drawn(PROJECTION, WIDTH), "embedding_projection.bias": drawn(PROJECTION)}
    return weights, projection


def make_records():
    rng = random.Random(12)

    def ids(least, most):  # begins unlike: all that cls pools of a causal model is the first token
        return [rng.randrange(3, VOCABULARY) for _ in range(rng.randint(least, most) + 1)]

    def text(most):
        tokens = ids(2, most)
        return {"ids": tokens, "first_pooled": rng.randint(0, len(tokens) - 1)}

    def turns():
        tokens = ids(2, 4)
        predicted = [False] * len(tokens)
        for _ in range(rng.randint(1, 2)):
            for is_answer in (False, True):
                more = rng.randint(1, 5)
                tokens += [rng.randrange(3, VOCABULARY) for _ in range(more)]
                predicted += [is_answer] * more
        return {"ids": tokens, "predicted": predicted}

    contrastive = [{"query": text(7), "pos": [text(14)], "neg": [text(14)]} for _ in range(QUERIES)]
    return {"temperature": TEMPERATURE, "group_size": GROUP, "projection": PROJECTION, "contrastive": contrastive,
            "generative": [turns() for _ in range(QUERIES)]}


# --- Formulas, text by text ----------------------------------------------------------------------------------------------


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + NORM_EPSILON) * weight


def rotary(length):
    """cos and sin [T, 1, K]"""
    angles = numpy.outer(numpy.arange(length), ROPE_THETA ** (-numpy.arange(0, HEAD, 2) / HEAD))
    angles = numpy.concatenate((angles, angles), axis=1)[:, None, :]
    return numpy.cos(angles), numpy.sin(angles)


def rotate(x_thk, cos, sin):
    low, high = x_thk[..., :HEAD // 2], x_thk[..., HEAD // 2:]
    return x_thk * cos + np.concatenate((-high, low), axis=-1) * sin


def attention(weights, prefix, x_td, seen_tt):
    length = len(x_td)
    q, k, v = ((x_td @ weights[f"{prefix}{name}_proj.weight"].T).reshape(length, heads, HEAD)
               for name, heads in (("q", HEADS), ("k", KEY_HEADS), ("v", KEY_HEADS)))
    cos, sin = rotary(length)
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    outputs = []
    for head in range(HEADS):
        own = head // (HEADS // KEY_HEADS)
        scores = q[:, head] @ k[:, own].T / numpy.sqrt(HEAD) + numpy.where(seen_tt, 0.0, -1e30)
        shares = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        outputs.append(shares / np.sum(shares, axis=1, keepdims=True) @ v[:, own])
    return np.concatenate(outputs, axis=1) @ weights[f"{prefix}o_proj.weight"].T


def hidden_states(weights, ids, bidirectional):
    seen = numpy.ones((len(ids), len(ids)), dtype=bool)
    seen = seen if bidirectional else numpy.tril(seen)
    x = weights["model.embed_tokens.weight"][numpy.array(ids)]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        x = x + attention(weights, prefix + "self_attn.", rms_norm(x, weights[prefix + "input_layernorm.weight"]), seen)
        normed = rms_norm(x, weights[prefix + "post_attention_layernorm.weight"])
        gate = normed @ weights[prefix + "mlp.gate_proj.weight"].T
        up = normed @ weights[prefix + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[prefix + "mlp.down_proj.weight"].T
    return rms_norm(x, weights["model.norm.weight"])


def vector_of(weights, text, pooling, bidirectional):
    hidden_td, first = hidden_states(weights, text["ids"], bidirectional), text["first_pooled"]
    if "embedding_projection.weight" in weights:
        hidden_td = hidden_td @ weights["embedding_projection.weight"].T + weights["embedding_projection.bias"]
    if pooling == "cls":
        pooled = hidden_td[0]
    elif pooling == "lasttoken":
        pooled = hidden_td[-1]
    else:
        count = len(hidden_td) - first
        shares = numpy.ones(count) if pooling == "mean" else numpy.arange(1.0, count + 1)
        pooled = (shares / shares.sum()) @ hidden_td[first:]
    return pooled / np.sqrt(np.sum(pooled * pooled))


def vectors_of(weights, records, pooling, bidirectional):
    """(queries [Q, d], passages [G Q, d])"""
    sides = [[record["query"] for record in records["contrastive"]],
             [text for record in records["contrastive"] for text in record["pos"] + record["neg"]]]
    return [np.stack([vector_of(weights, text, pooling, bidirectional) for text in side]) for side in sides]


def log_sum_exp(x):
    """Over the last axis."""
    most = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - most), axis=-1)) + most[..., 0]


def contrastive_loss(weights, records, pooling, bidirectional):
    queries, passages = vectors_of(weights, records, pooling, bidirectional)
    scores = queries @ passages.T / TEMPERATURE
    rows = numpy.arange(len(queries))
    return np.mean(log_sum_exp(scores) - scores[rows, rows * GROUP])


def last_run_alone(predicted):
    end = max(place for place, is_predicted in enumerate(predicted) if is_predicted)
    begin = end
    while begin > 0 and predicted[begin - 1]:
        begin -= 1
    return [begin <= place <= end for place in range(len(predicted))]


def generative_loss(weights, records, kind):
    losses, labels = [], []
    for row in records["generative"]:
        predicted = last_run_alone(row["predicted"]) if kind == "prefixlm" else row["predicted"]
        logits = hidden_states(weights, row["ids"], bidirectional=False) @ weights["lm_head.weight"].T
        places = numpy.array([place for place in range(1, len(row["ids"])) if predicted[place]])
        own = logits[places - 1]
        losses.append(np.sum(log_sum_exp(own) - own[numpy.arange(len(places)), numpy.array(row["ids"])[places]]))
        labels.append(len(places))
    if kind == "token":
        return sum(losses) / len(losses)
    if kind == "sample":
        return sum(loss / count for loss, count in zip(losses, labels)) / len(losses)
    return sum(losses) / sum(labels)


# --- Files ---------------------------------------------------------------------------------------------------------------


def write_safetensors(path, tensors):
    """The float64 ones first, so that each lies at a multiple of its size."""
    ordered = sorted(tensors.items(), key=lambda item: (item[1].dtype != numpy.float64, item[0]))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, value in ordered:
        header[name] = {"dtype": "F64" if value.dtype == numpy.float64 else "F32", "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(value.tobytes() for _, value in ordered))


def as_fp32(tensors):
    return {name: numpy.ascontiguousarray(value, dtype=numpy.float32) for name, value in tensors.items()}


def expected_of(case, loss_of, weights, trained):
    """trained: names of the parameters that have a gradient."""
    loss, gradients = value_and_grad(
        lambda own: loss_of({**weights, **{name: own[name] for name in trained}}))({name: weights[name] for name in trained})
    return {f"{case}/loss": numpy.array([loss]),
            **as_fp32({f"{case}/gradient.{name}": gradient for name, gradient in gradients.items()})}


def all_expected(records, weights, projection):
    expected = {}
    body = [name for name in weights if name != "lm_head.weight"]
    cases = [(f"embedding.{pooling}.{'bidirectional' if both_ways else 'causal'}", pooling, both_ways, weights)
             for pooling in ("mean", "weightedmean", "cls", "lasttoken") for both_ways in (True, False)]
    cases.append(("embedding.projection", "mean", True, {**weights, **projection}))
    for case, pooling, both_ways, own in cases:
        trained = body + [name for name in own if name not in weights]
        expected |= expected_of(case, lambda w, p=pooling, b=both_ways: contrastive_loss(w, records, p, b), own, trained)
        queries, passages = vectors_of(own, records, pooling, both_ways)
        expected |= as_fp32({f"{case}/vectors.queries": queries, f"{case}/vectors.passages": passages})
    for kind in ("mixed", "token", "sample", "prefixlm"):
        expected |= expected_of(f"generative.{kind}", lambda w, k=kind: generative_loss(w, records, k), weights, list(weights))
    return expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    weights, projection = make_weights()
    records = make_records()
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (folder / "records.json").write_text(json.dumps(records) + "\n")
    write_safetensors(folder / "model.safetensors", as_fp32(weights))
    write_safetensors(folder / "projection.safetensors",
                      as_fp32({"linear." + name.split(".")[1]: value for name, value in projection.items()}))
    write_safetensors(folder / "expected.safetensors", all_expected(records, weights, projection))


if __name__ == "__main__":
    main()
