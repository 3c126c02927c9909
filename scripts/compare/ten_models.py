"""The models that the comparisons of the family ten share: shapes that read bytes, and long text to train on."""
import json

from train_runs import TEXT, llama, run

LONGEST = 262144


def ten(hidden, layers, eigenstates, positions=LONGEST, **changes):
    """config.json of a TEN that reads bytes."""
    return {"architectures": ["TenForCausalLM"], "model_type": "ten", "vocab_size": 258, "hidden_size": hidden,
            "intermediate_size": 4 * hidden, "num_hidden_layers": layers, "num_eigenstates": eigenstates, "num_heads": 4,
            "init": "lru", "min_modulus": 0.9, "max_modulus": 0.999, "max_angle": 6.283185307179586, "selective": False,
            "conv_kernel": 4, "depth_decay": True, "layer_memory": True, "windows": [], "scan_chunk": 256,
            "dynamics_rate": 0.1, "layer_norm_eps": 1e-5, "max_position_embeddings": positions,
            "tie_word_embeddings": True, **changes}


def mamba2(hidden, layers, head_dim):
    """Arguments of transformers' Mamba2Config. Chunks of 64 take it half the time here that its own 256 take."""
    return {"vocab_size": 258, "hidden_size": hidden, "num_hidden_layers": layers, "state_size": 64, "expand": 2,
            "head_dim": head_dim, "num_heads": 2 * hidden // head_dim, "n_groups": 1, "chunk_size": 64,
            "tie_word_embeddings": True, "pad_token_id": 0, "bos_token_id": 256, "eos_token_id": 257}


# As many parameters each, to three per cent: 1.6M and 15M. Of Mamba2 the longest sample whose step fits into 16 GB.
MODELS = {
    "ten-micro": {"ten": ten(192, 4, 64), "llama": llama(192, 480, 4, 6, LONGEST), "mamba2": mamba2(192, 6, 32),
                  "mamba2_longest": 32768},
    "ten-small": {"ten": ten(512, 6, 64), "llama": llama(512, 1120, 6, 8, LONGEST), "mamba2": mamba2(512, 9, 64),
                  "mamba2_longest": 8192},
}
# As its preset is, with the tokens of GPT-2 that the text's bytes are among: the head is that of 131.4M parameters. Alone, in
# samples of its full length: minutes a step.
LONG_MODELS = {"ten-small-32k": {"ten": ten(1024, 8, 128, 32768, vocab_size=50257), "tokens": "32768", "ways": "full"}}


def write_config(path, config):
    path.write_text(json.dumps(config, indent=1))
    return path


def long_shards(folder, chunk, chunks, text=TEXT):
    """Packs one document, the text as often as that takes, into so many chunks of so many tokens.

    Two bytes less than they hold, for marks at its ends: a chunk of a mark alone would be a sample that trains nothing.
    """
    data, size_bytes = text.read_bytes(), chunk * chunks - 2
    (folder / f"long-{chunk}.txt").write_bytes((data * -(-size_bytes // len(data)))[:size_bytes])
    run("pretokenize", "-q", "--tokenizer", "bytes", "--format", "file", folder / f"long-{chunk}.txt",
        "-o", folder / f"long-{chunk}.tokens")
    run("pack", "-q", "--chunk", chunk, "--mode", "concat", folder / f"long-{chunk}.tokens", "-o",
        folder / f"long-{chunk}.shards")
    return folder / f"long-{chunk}.shards"
