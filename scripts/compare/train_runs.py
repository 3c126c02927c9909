"""What scripts share that run the tools on small models, look at what they left, and report it."""
import array
import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "examples/data/tinyshakespeare.txt"


def run(*command, text=None):
    """The standard output of a command that gets `text` as its standard input; it has to succeed."""
    done = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()[-800:]}")
    return done.stdout


def llama(hidden, inner, layers, heads, positions=256):
    """config.json of a Llama that reads bytes, with half as many heads of keys and values."""
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": hidden,
            "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": heads // 2, "head_dim": hidden // heads, "max_position_embeddings": positions,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu"}


def tools_environment(tools):
    """Where the tools of a folder compute with one thread, and nothing else is set for them."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWRIGHT_")}
    return {**own, "PATH": f"{tools}:{os.environ['PATH']}", "TRAINWRIGHT_THREADS": "1"}


def make_shards(folder, environment, **parts):
    """Packs parts of the text: of each folder's name the end of a pipe that gives the text, as "head -n 8000"."""
    for name, part in parts.items():
        subprocess.run(["bash", "-euo", "pipefail", "-c",
                        f"{part} '{TEXT}' | pretokenize -q - | pack -q --chunk 256 -o {name}/"],
                       cwd=folder, env=environment, check=True)


def records_of(run, kind=None):
    """Of a run directory's metrics.jsonl, all or those of a type; of a run that goes on, as far as they are written."""
    records = []
    with contextlib.suppress(OSError):
        for line in (run / "metrics.jsonl").read_text().splitlines():
            with contextlib.suppress(ValueError):  # the last line may be half there
                records.append(json.loads(line))
    return [record for record in records if kind in (None, record["type"])]


def figures_of(records):
    """Of the records of a run that tells of every step: losses, seconds by the wall and of processors, tokens, memory."""
    steps = [record for record in records if record["type"] == "step"]
    # A record's cpu_cores is about the time since the one before.
    begins = [None] + [step["time_unix_s"] for step in steps[:-1]]
    walls = [step["step_time_s"] if begin is None else step["time_unix_s"] - begin for begin, step in zip(begins, steps)]
    return {"losses_nats": [step["loss_nats"] for step in steps],
            "step_times_s": [step["step_time_s"] for step in steps],
            "cpu_times_s": [step["cpu_cores"] * wall for step, wall in zip(steps, walls)],
            "tokens": [step["tokens"] for step in steps],
            "max_memory_bytes": steps[-1]["max_memory_bytes"]}


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def weights_of(checkpoint):
    """The file of a checkpoint that holds what was trained: the model, or its adapter."""
    adapter = checkpoint / "adapter_model.safetensors"
    return adapter if adapter.exists() else checkpoint / "model.safetensors"


def read_safetensors(path):
    """(header, the bytes of all tensors)"""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8:8 + size]), content[8 + size:]


def floats_of(path, name=None):
    """The fp32 numbers of a file's tensor, or of all in the order of the file."""
    header, data = read_safetensors(path)
    begin, end = header[name]["data_offsets"] if name else (0, len(data))
    assert all(tensor["dtype"] == "F32" for key, tensor in header.items() if key == name or not name and key != "__metadata__")
    return array.array("f", data[begin:end])


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")


def version_of(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def write_report(text, out):
    """To a file, or to standard output where there is none."""
    if out:
        out.write_text(text)
    else:
        print(text, end="")


def describe(options_bin):
    """The line of a report that tells the day, the machine and the tools."""
    version = subprocess.run([options_bin / "train", "--version"], capture_output=True, text=True, check=True).stdout
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return (f"{datetime.date.today()}, {os.cpu_count()} processors of an {processor()}, {version.splitlines()[0]}, scripts of "
            f"{commit.stdout.strip() or 'no commit'}.")
