"""Small models of the family ten, and shards for them, that the comparisons of this folder share."""
import json
import math
import subprocess

from train_runs import TEXT, tools_environment

VOCABULARY = 258  # the bytes tokenizer's
COMMON = {"architectures": ["TenForCausalLM"], "model_type": "ten", "vocab_size": VOCABULARY, "hidden_size": 48,
          "intermediate_size": 96, "num_hidden_layers": 2, "num_eigenstates": 16, "num_heads": 4, "init": "lru",
          "min_modulus": 0.9, "max_modulus": 0.999, "max_angle": 2 * math.pi, "selective": False, "conv_kernel": 4,
          "depth_decay": True, "layer_memory": True, "windows": [], "scan_chunk": 64, "dynamics_rate": 0.1,
          "layer_norm_eps": 1e-5, "max_position_embeddings": 256, "tie_word_embeddings": True}
PLAIN = {"conv_kernel": 0, "depth_decay": False, "layer_memory": False}
SHAPES = {
    "compat": {"init": "compat", **PLAIN},
    "compat pro": {"init": "compat", "num_hidden_layers": 3},
    "lru": PLAIN,
    "lru pro": {},
    "lru pro untied": {"tie_word_embeddings": False},
    "selective compat": {"init": "compat", "selective": True},
    "selective lru": {"selective": True, "layer_memory": False},
    "windows": {"windows": [1, 2, 4, 8]},
    "windows selective": {"windows": [2, 6], "selective": True, "num_eigenstates": 24},
}


def write_config(path, shape):
    path.write_text(json.dumps({**COMMON, **SHAPES[shape]}))
    return path


def make_shards(folder, tools):
    """FOLDER/documents: a line of the text is a document, so that a sample packs several; FOLDER/text: one document."""
    for name, part, read in (("documents", "head -n 2000", ""), ("text", "head -c 100000", "--format file --tokenizer bytes")):
        subprocess.run(["bash", "-euo", "pipefail", "-c",
                        f"{part} '{TEXT}' > {name}.txt; pretokenize -q {read or '--format lines --tokenizer bytes'} {name}.txt | "
                        f"pack -q --chunk 256 -o {name}/"], cwd=folder, env=tools_environment(tools), check=True)
