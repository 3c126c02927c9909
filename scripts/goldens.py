#!/usr/bin/env python3
"""Short runs of `train` whose final weights are recorded: writes the record, compares with it, resumes old states.

usage: goldens.py [--bin BUILD_DIR] COMMAND [OPTION]...    what scripts/goldens.sh calls; see there and
                                                           tests/golden/weights/README.md

  check    compares with the record of this machine's key; without one, old states must only resume, and the status is 77
           if more was to be compared
  missing  prints the groups that this machine's key has no record of, one a line
  write    writes that record
  compare  OTHER_BUILD_DIR: runs both builds and compares them, whatever is recorded
  full     OUT.tsv: the full product, one line a run; goes on where OUT.tsv ends
  list     prints the runs by name
  states   makes the run directories in tests/golden/resume; once for a version, with the build of that version

  --group NAME  pairwise, dropout, resume, resume_dropout or ten; may be repeated (default: all)
  --seed N      of the runs (default: 1); another one shows that a check can fail
  --jobs N      processes with one thread that run at once (default: the processors)

Each run takes a model of some 30,000 parameters four steps on a few kilobytes of examples/data. Its record is the
SHA-256 of its tensors, in the order of their names and whatever their place in the file: of the weights, of the
optimizer's states, and with adapters of the random base; beside them what the run counted and its last loss.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
RECORDS = SOURCE / "tests/golden/weights"
STATES = SOURCE / "tests/golden/resume"
NO_RECORD = 77  # CTest's SKIP_RETURN_CODE
# Each may be recorded with a commit of its own: those with dropout were recorded anew when dropout changed.
GROUPS = ["pairwise", "dropout", "resume", "resume_dropout", "ten"]
RESUMING = {"resume", "resume_dropout"}
STEPS = 4

# Every factor and its values, each with the flags that ask for it; the first value is the one of runs that leave the
# factor out. "family" and "embeddings" choose the config.json, "data" the shards.
FACTORS = {
    "family": {"llama": [], "mistral": [], "qwen2": [], "gpt2": [], "gpt_neox": []},
    "embeddings": {"tied": [], "untied": []},
    "data": {"lm": ["--data", "data/lm"], "sft": ["--data", "data/sft"],
             "mixture": ["--data", "data/lm", "--data", "data/second", "--data-weights", "0.7,0.3"]},
    "precision": {"fp32": ["--mixed-precision", "no"], "bf16": ["--mixed-precision", "bf16"],
                  "fp16": ["--mixed-precision", "fp16"]},
    "tuning": {"full": [], "lora": ["--lora", "4"], "nf4": ["--lora", "4", "--quant", "nf4"],
               "lora_attention": ["--lora", "4", "--lora-targets", "attention"],
               "nf4_mlp": ["--lora", "4", "--quant", "nf4", "--lora-targets", "mlp"]},
    "accum": {"1": ["--accum", "1"], "4": ["--accum", "4"]},
    "recompute": {choice: ["--checkpoint-activations", choice] for choice in ("no", "selective", "full")},
    "offload": {choice: ["--offload", choice] for choice in ("no", "activations", "gradients", "all")},
    "states": {choice: ["--optimizer-states", choice] for choice in ("fp32", "bf16")},
    "sample": {"long": ["--batch", "2", "--seq", "160"], "short": ["--batch", "3", "--seq", "48"]},
    "loss": {"plain": [], "z": ["--z-loss", "1e-2"], "smoothed": ["--label-smoothing", "0.1"],
             "overflowing": ["--z-loss", "100"]},  # under fp16 some steps are skipped
    "schedule": {"cosine": ["--schedule", "cosine"], "linear": ["--schedule", "linear"],
                 "constant": ["--schedule", "constant"], "wsd": ["--schedule", "wsd", "--decay-steps", "2"],
                 "one_cycle": ["--schedule", "one-cycle", "--cycle-momentum"]},
    "clip": {"1": ["--clip", "1"], "none": ["--clip", "0"]},
    "attention": {"auto": ["--attn-backend", "auto"], "math": ["--attn-backend", "math"]},
    "threads": {"1": ["--threads", "1"], "2": ["--threads", "2"]},
}

# Of the family ten alone, in a group of its own: one more value of a factor above would make other runs of all groups, and
# void the records of every machine. The fields of config.json by shape.
TEN_SHAPES = {
    "compat": {"init": "compat", "conv_kernel": 0, "depth_decay": False, "layer_memory": False},
    "lru": {"init": "lru"},
    "selective": {"init": "lru", "selective": True},
    "windows": {"init": "lru", "windows": [1, 2, 4, 8]},
}
TEN_FACTORS = {
    "shape": {shape: [] for shape in TEN_SHAPES},
    "scan": {choice: ["--ten-scan", choice] for choice in ("fused", "chunked", "sequential")},
    "tbptt": {"whole": [], "pieces": ["--tbptt", "60"]},
}


def factors(**values):
    """The named factors, each with the values given for it, or with all where that is None."""
    return {name: list(FACTORS[name]) if chosen is None else chosen for name, chosen in values.items()}


PAIRWISE = factors(**{name: None for name in FACTORS})
DROPOUT = factors(family=None, precision=None, tuning=["lora", "nf4"], accum=None, recompute=None, offload=None,
                  sample=None, threads=None)
FULL = factors(family=None, precision=None, tuning=["full", "lora", "nf4"], accum=None, recompute=None, offload=None,
               states=None)

TEN = {name: list(values) for name, values in TEN_FACTORS.items()} | factors(
    embeddings=None, data=None, precision=None, tuning=["full", "lora", "nf4"], accum=None, recompute=None, offload=None,
    states=None, sample=None, threads=None)


def all_pairs(values_of):
    """Rows, {factor: value}, in which any two values of two factors meet: greedy, and the same every time."""
    names = sorted(values_of, key=lambda name: -len(values_of[name]))
    uncovered = {}  # in the order in which rows are made for them
    for first, second in itertools.combinations(names, 2):
        for pair in itertools.product(values_of[first], values_of[second]):
            uncovered[(first, pair[0]), (second, pair[1])] = None
    rows = []
    while uncovered:
        row = dict(next(iter(uncovered)))
        for name in names:
            if name in row:
                continue
            values = values_of[name]
            turned = [values[(len(rows) + i) % len(values)] for i in range(len(values))]  # ties take turns

            def gain(value, name=name, row=row):
                met = [tuple(sorted(((name, value), other), key=lambda item: names.index(item[0])))
                       for other in row.items()]
                return sum(pair in uncovered for pair in met)
            row[name] = max(turned, key=gain)
        chosen = [(name, row[name]) for name in names]
        for pair in itertools.combinations(chosen, 2):
            uncovered.pop(pair, None)
        rows.append({name: row[name] for name in values_of})
    return rows


def pairwise_rows():
    """All pairs, and once more those of full tuning: adapters leave out much of the backward pass."""
    rows = all_pairs(PAIRWISE)
    return rows + [row for row in all_pairs(PAIRWISE | {"tuning": ["full"]}) if row not in rows]


def name_of(row):
    return " ".join(f"{factor}={value}" for factor, value in row.items())


def model_config(family, embeddings="tied", hidden=32, inner=64, layers=3, heads=2, positions=160):
    """A config.json of the family: grouped heads where it has them, a window where it has one."""
    tied = embeddings == "tied"
    shared = {"model_type": family, "vocab_size": 258, "tie_word_embeddings": tied}
    if family == "gpt2":
        return shared | {"n_embd": hidden, "n_inner": inner, "n_layer": layers, "n_head": heads,
                         "n_positions": positions, "activation_function": "gelu_new"}
    shared |= {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
               "num_attention_heads": heads, "max_position_embeddings": positions}
    if family == "gpt_neox":
        return shared | {"hidden_act": "gelu", "rotary_pct": 0.25, "use_parallel_residual": True}
    shared |= {"num_key_value_heads": 1, "head_dim": hidden // heads, "hidden_act": "silu", "rms_norm_eps": 1e-5}
    if family == "mistral":
        return shared | {"sliding_window": 24}
    if family == "qwen2":
        return shared | {"use_sliding_window": True, "sliding_window": 40, "max_window_layers": layers - 1}
    return shared


def ten_config(shape, embeddings):
    """A config.json of the family ten, with chunks of the scan that are shorter than the samples."""
    return {"model_type": "ten", "vocab_size": 258, "tie_word_embeddings": embeddings == "tied", "hidden_size": 32,
            "intermediate_size": 64, "num_hidden_layers": 3, "num_eigenstates": 16, "num_heads": 4, "min_modulus": 0.9,
            "max_modulus": 0.999, "max_angle": 2 * math.pi, "selective": False, "conv_kernel": 4, "depth_decay": True,
            "layer_memory": True, "windows": [], "scan_chunk": 32, "dynamics_rate": 0.1, "layer_norm_eps": 1e-5,
            "max_position_embeddings": 160} | TEN_SHAPES[shape]


class Programs:
    """The programs of a build, in an environment that nothing of the caller's but the instruction set reaches."""

    def __init__(self, build_dir, temporary):
        self._bin = pathlib.Path(build_dir).resolve() / "bin"
        if not (self._bin / "train").exists():
            sys.exit(f"goldens: error: {build_dir} holds no bin/train: name a build folder by --bin")
        self._environment = {name: os.environ[name] for name in ("HOME", "ATEN_CPU_CAPABILITY") if name in os.environ}
        self._environment |= {"PATH": f"{self._bin}:{os.environ['PATH']}", "TMPDIR": str(temporary), "LC_ALL": "C"}

    def run(self, folder, command, check=True):
        result = subprocess.run(command, cwd=folder, env=self._environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=300)
        if check and result.returncode != 0:
            sys.exit(f"goldens: error: {' '.join(map(str, command))}\nends with {result.returncode}\n{result.stderr}")
        return result


def make_data(programs, folder):
    """Shards data/lm, data/second and data/sft in `folder`, of the first documents of examples/data.
    Returns the SHA-256 of each set's content."""
    speeches = (SOURCE / "examples/data/tinyshakespeare.txt").read_text().split("\n\n")[:70]
    with open(SOURCE / "examples/data/gsm8k-train.jsonl", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in itertools.islice(lines, 400)]
    short = [problem for problem in problems if len(problem["question"]) + len(problem["answer"]) < 260]
    # Without EOS, as the data of the recorded weights was written.
    sets = {"lm": ([{"text": speech} for speech in speeches], ["--no-eos"]),
            "second": ([{"text": problem["question"]} for problem in problems[:40]], ["--no-eos"]),
            "sft": ([{"prompt": problem["question"], "response": problem["answer"]} for problem in short[:40]],
                    ["--records", "sft", "--template", "qa-space"])}
    contents = {}
    (folder / "data").mkdir()
    for name, (documents, flags) in sets.items():
        text = folder / f"{name}.jsonl"
        text.write_text("".join(json.dumps(document) + "\n" for document in documents))
        programs.run(folder, ["pretokenize", "-q", *flags, "-o", f"{name}.tokens", text.name])
        programs.run(folder, ["pack", "-q", "--chunk", "512", "-o", f"data/{name}/", f"{name}.tokens"])
        contents[name] = json.loads((folder / f"data/{name}/MANIFEST.json").read_text())["content_sha256"]
    return contents


def read_safetensors(path):
    """Returns the metadata of a safetensors file and its tensors, {name: (dtype, shape, bytes)}."""
    content = path.read_bytes()
    header_size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + header_size])
    data = memoryview(content)[8 + header_size:]
    metadata = header.pop("__metadata__", {})
    return metadata, {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                      for name, entry in header.items()}


def hash_tensors(tensors):
    digest = hashlib.sha256()
    for name, (dtype, shape, data) in sorted(tensors.items()):
        digest.update(json.dumps([name, dtype, shape]).encode() + b"\n")
        digest.update(data)
    return digest.hexdigest()


def describe_run(programs, run):
    """What a finished run left: (key of the machine, record)."""
    checkpoint = max((run / "checkpoints").iterdir())
    adapter = checkpoint / "adapter_model.safetensors"
    weights = adapter if adapter.exists() else checkpoint / "model.safetensors"
    state_path = checkpoint / "trainwright_state.safetensors"
    for path in json.loads((checkpoint / "metadata.json").read_text()).get("compressed_files", []):
        plain = run / path
        programs.run(run, ["ckpt-compress", "-q", "-d", "-o", plain, checkpoint / path])
        weights, state_path = [plain if old.name == path else old for old in (weights, state_path)]
    metadata, moments = read_safetensors(state_path)
    state = json.loads(metadata["state"])
    record = {"weights": hash_tensors(read_safetensors(weights)[1]), "states": hash_tensors(moments)}
    if (run / "base").exists():
        record["base"] = hash_tensors(read_safetensors(run / "base/model.safetensors")[1])
    record["counts"] = " ".join(f"{name}={state[name]}" for name in ("step", "updates", "tokens_seen", "labels_seen"))
    record["counts"] += " cursor=" + "/".join(str(state["cursor"][name]) for name in ("epoch", "window", "sample"))
    record["counts"] += " scale=%g skipped=%d" % (state["loss_scaler"]["scale"], state["loss_scaler"]["skipped_steps"])
    with open(run / "metrics.jsonl", encoding="utf-8") as lines:
        record["loss_nats"] = [step["loss_nats"] for step in map(json.loads, lines) if step["type"] == "step"][-1]
    key = {name: state["compute"][name] for name in ("device", "cpu_capability", "torch_build")}
    return key, record


def run_row(programs, folder, seed, number, row, extra):
    chosen = {factor: row.get(factor, next(iter(values))) for factor, values in FACTORS.items()}
    family = f"ten-{row['shape']}" if "shape" in row else chosen["family"]
    model = folder / f"{family}-{chosen['embeddings']}.json"
    out = folder / f"run-{number}"
    flags = [flag for factor, value in chosen.items() for flag in FACTORS[factor][value]]
    flags += [flag for factor, values in TEN_FACTORS.items() if factor in row for flag in values[row[factor]]]
    programs.run(folder, ["train", "-q", "--device", "cpu", "--model", model.name, "--out", out.name, "--seed", seed,
                          "--steps", str(STEPS), "--warmup", "1", "--lr", "0.01", "--save-every", "0",
                          "--watchdog", "off", *flags, *extra])
    described = describe_run(programs, out)
    shutil.rmtree(out)
    return described


class Session:
    """Runs of one build in one temporary folder."""

    def __init__(self, build_dir, scratch, options):
        self._folder = pathlib.Path(scratch)
        self._folder.mkdir()
        self._options = options
        self.programs = Programs(build_dir, self._folder)
        self.data = make_data(self.programs, self._folder)
        self.key = None
        for family, embeddings in itertools.product(FACTORS["family"], FACTORS["embeddings"]):
            path = self._folder / f"{family}-{embeddings}.json"
            path.write_text(json.dumps(model_config(family, embeddings), indent=1))
        for shape, embeddings in itertools.product(TEN_SHAPES, FACTORS["embeddings"]):
            path = self._folder / f"ten-{shape}-{embeddings}.json"
            path.write_text(json.dumps(ten_config(shape, embeddings), indent=1))

    def rows(self, rows, extra=(), done=None):
        """Runs rows, one-threaded ones beside each other. Returns {name: record} in their order.
        done: called with each name and record as they come"""
        def work(numbered):
            number, row = numbered
            return name_of(row), *run_row(self.programs, self._folder, str(self._options.seed), number, row, extra)
        return self._collect(work, list(enumerate(rows)), lambda item: int(item[1].get("threads", "1")), done)

    def resumed(self, names):
        """Resumes a copy of each named run directory of those committed. Returns {name: record}."""
        cases = json.loads((STATES / "cases.json").read_text())
        shutil.copytree(STATES / "data", self._folder / "old", dirs_exist_ok=True)

        def work(case):
            return case, *resume_case(self.programs, self._folder, case, cases[case], str(self._options.seed))
        return self._collect(work, sorted(names), lambda case: int(cases[case]["threads"]), None)

    def _collect(self, work, items, threads_of, done):
        records = {}
        for threads in sorted(set(map(threads_of, items))):
            with concurrent.futures.ThreadPoolExecutor(max(1, self._options.jobs // threads)) as pool:
                for name, key, record in pool.map(work, [item for item in items if threads_of(item) == threads]):
                    if self.key not in (None, key):
                        sys.exit(f"goldens: error: one build has two identities, {self.key} and {key}")
                    self.key = key
                    records[name] = record
                    if done:
                        done(name, record)
        return records

    def group(self, group):
        if group in RESUMING:
            return self.resumed(cases_of(group))
        if group == "dropout":
            return self.rows(all_pairs(DROPOUT), ["--lora-dropout", "0.2"])
        if group == "ten":
            return self.rows(all_pairs(TEN))
        return self.rows(pairwise_rows())


def resume_case(programs, folder, name, case, seed):
    run = folder / f"resume-{name}"
    shutil.copytree(STATES / name, run)
    flags = [flag for data in case["data"] for flag in ("--data", f"old/{data}")]
    if case["base"]:
        flags += ["--init", f"{run.name}/base"]
    if seed != "1":
        flags += ["--seed", seed]
    result = programs.run(folder, ["train", "--progress", "never", "--resume", "--out", run.name, "--device", "cpu",
                                   "--threads", case["threads"], "--save-every", "0", *flags])
    expected = f"continuing at step {case['from']} of {case['to']}"
    if expected not in result.stderr:
        sys.exit(f"goldens: error: {name} was not resumed: no '{expected}' in\n{result.stderr}")
    key, record = describe_run(programs, run)
    if f"step={case['to']} " not in record["counts"]:
        sys.exit(f"goldens: error: {name} ended elsewhere than at step {case['to']}: {record['counts']}")
    return key, record


# What the committed run directories are: flags beside the model, and whose data.
CASES = {
    "full-fp32": ("llama", ["lm"], ["--accum", "2"], "1"),
    "full-bf16-states": ("mistral", ["lm"], ["--mixed-precision", "bf16", "--optimizer-states", "bf16"], "2"),
    "fp16-skipped-steps": ("llama", ["lm"], ["--mixed-precision", "fp16", "--z-loss", "100"], "1"),
    "lora": ("qwen2", ["lm"], ["--lora", "2", "--mixed-precision", "bf16"], "1"),
    "lora-dropout": ("llama", ["lm"], ["--lora", "2", "--lora-dropout", "0.2"], "1"),
    "nf4": ("llama", ["lm"], ["--lora", "2", "--quant", "nf4"], "2"),
    "gpt2": ("gpt2", ["lm"], ["--schedule", "wsd", "--decay-steps", "3"], "1"),
    "gpt-neox": ("gpt_neox", ["lm"], ["--schedule", "one-cycle", "--cycle-momentum"], "1"),
    "sft": ("llama", ["sft"], ["--z-loss", "1e-3"], "1"),
    "mixture": ("llama", ["lm", "second"], ["--data-weights", "0.7,0.3", "--drop-last"], "1"),
    "split-evaluation": ("llama", ["lm"], ["--eval-split", "0.1", "--eval-every", "2"], "1"),
    "compressed": ("llama", ["lm"], ["--compress-state", "--compress-model"], "1"),
}
SAVED_STEP, LAST_STEP = 3, 6


def cases_of(group):
    """The names of the committed run directories of a group: resume_dropout has those with dropout."""
    return [name for name, (_, _, flags, _) in CASES.items()
            if ("--lora-dropout" in flags) == (group == "resume_dropout")]


def make_state(programs, folder, name):
    """Makes tests/golden/resume/NAME: the run as it was after SAVED_STEP steps, without host and paths."""
    family, data, flags, threads = CASES[name]
    config = model_config(family, hidden=8, inner=16, layers=2, heads=1 if family == "gpt_neox" else 2, positions=96)
    (folder / f"{name}.json").write_text(json.dumps(config))
    run = folder / name
    programs.run(folder, ["train", "-q", "--device", "cpu", "--model", f"{name}.json", "--out", name, "--steps",
                          str(LAST_STEP), "--batch", "2", "--seq", "96", "--lr", "0.01", "--save-every",
                          str(SAVED_STEP), "--keep", "0", "--threads", threads,
                          *[flag for one in data for flag in ("--data", f"data/{one}")], *flags])
    described = describe_run(programs, run)
    for unneeded in ("tb", f"checkpoints/step-{LAST_STEP:08}"):
        shutil.rmtree(run / unneeded)
    for unneeded in ("report.svg", "report.html", "training_metrics.json", "latest", ".lock",
                     "trainwright_state.safetensors", "model.safetensors"):
        (run / unneeded).unlink(missing_ok=True)
    checkpoint = run / f"checkpoints/step-{SAVED_STEP:08}"
    metadata = checkpoint / "metadata.json"
    adapter = checkpoint / "adapter_config.json"
    if adapter.exists():
        before = adapter.read_bytes()
        after = before.replace(bytes(folder.resolve()), b"/runs")
        adapter.write_bytes(after)
        text = metadata.read_text().replace(hashlib.sha256(before).hexdigest(), hashlib.sha256(after).hexdigest())
        metadata.write_text(re.sub(rf'("adapter_config.json": *{{\s*"size_bytes": *){len(before)}', rf"\g<1>{len(after)}", text))
    metrics = run / "metrics.jsonl"
    kept = [line for line in metrics.read_text().splitlines(keepends=True)
            if json.loads(line).get("step", 0) <= SAVED_STEP and json.loads(line)["type"] != "run_end"]
    metrics.write_text("".join(kept))
    for path in (metadata, metrics):
        path.write_text(re.sub(r'("host": *)"[^"]*"', r'\1"host"', path.read_text()))
    shutil.rmtree(STATES / name, ignore_errors=True)
    shutil.copytree(run, STATES / name)
    return described


def record_path(key):
    cpu = re.sub(r"[^a-z0-9]+", "-", f"{key['device']} {key['cpu_capability']}".lower()).strip("-")
    torch = re.sub(r"[^a-z0-9.]+", "-", key["torch_build"].split(",")[0].lower())
    return RECORDS / f"{cpu}-{torch}-{hashlib.sha256(key['torch_build'].encode()).hexdigest()[:8]}.json"


def processor():
    """Family, model and stepping: beyond the key, for whoever looks into a difference."""
    fields = {}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            fields[name.strip()] = value.strip()
    except OSError:
        pass
    return " ".join(fields.get(name, "?") for name in ("vendor_id", "cpu family", "model", "stepping"))


def shorten(value):
    """A hash needs no more than its first digits to be told from another."""
    return value[:12] if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else str(value)


def differences(expected, found):
    """Lines that tell what differs between two records of a group."""
    lines = []
    for name in [*expected, *[name for name in found if name not in expected]]:
        if name not in found or name not in expected:
            lines.append(f"{name}: {'is not run any more' if name in expected else 'has no record'}")
            continue
        changed = [f"{field} {shorten(expected[name].get(field))} -> {shorten(found[name].get(field))}"
                   for field in sorted(expected[name].keys() | found[name].keys())
                   if expected[name].get(field) != found[name].get(field)]
        if changed:
            lines.append(f"{name}:\n    " + "\n    ".join(changed))
    return lines


def report(group, expected, found, against):
    lines = differences(expected, found)
    for line in lines:
        print(f"{group}: {line}")
    print(f"{group}: {len(found) - len(lines)} of {len(found)} as {against}" if lines else
          f"{group}: {len(found)} as {against}")
    return len(lines)


def read_record(session, options):
    """(path, record of this machine's key, the groups that it lacks)"""
    session.rows([{}])  # tells the key
    path = record_path(session.key)
    record = json.loads(path.read_text()) if path.exists() else {}
    return path, record, [group for group in options.group if group not in record]


def check(session, options):
    """Compares with the record. Returns the exit status."""
    path, record, missing = read_record(session, options)
    if missing:
        print(f"goldens: {path.relative_to(SOURCE)}, of this machine's key, " + ("holds no " if record else "is not there: no ") +
              f"record of {', '.join(missing)}. scripts/goldens.sh --check builds the base commit and compares with that")
    for group in filter(RESUMING.__contains__, missing):
        print(f"{group}: {len(session.group(group))} end at their last step")
    if record and record["data"] != session.data:
        print("goldens: the data differs: pretokenize, pack or examples/data changed, so the weights must, too")
    count = sum(report(group, record[group], session.group(group), f"recorded in {path.name}")
                for group in options.group if group in record)
    if count and record["written_on"] != processor():
        print(f"goldens: written on {record['written_on']}, this is {processor()}: if they do not compute alike, "
              "compare with the base build: scripts/goldens.sh --check --base")
    if count:
        return 1
    return NO_RECORD if missing and not RESUMING.issuperset(options.group) else 0


def write(session, options):
    found = {group: session.group(group) for group in options.group}
    path = record_path(session.key)
    record = json.loads(path.read_text()) if path.exists() else {}
    record.update({"key": session.key, "written_on": processor(), "data": session.data, **found})
    ordered = {name: record[name] for name in ("key", "written_on", "data", *GROUPS) if name in record}
    path.write_text(json.dumps(ordered, indent=1) + "\n")
    print(f"wrote {path.relative_to(SOURCE)}: " + ", ".join(f"{group} {len(found[group])}" for group in found))
    return 0


def full(session, out):
    """Runs of the full product that `out` does not hold yet, spread over it, so that a part of them is a fair sample."""
    product = [dict(zip(FULL, values)) for values in itertools.product(*FULL.values())]
    stride = 1009
    assert math.gcd(stride, len(product)) == 1
    rows = [product[i * stride % len(product)] for i in range(len(product))]
    hashed = ("weights", "states", "base")
    columns = [*FULL, *(f"{field}_sha256" for field in hashed), "loss_nats"]
    path = pathlib.Path(out)
    if not path.exists():
        path.write_text("\t".join(columns) + "\n")
    done = {tuple(line.split("\t")[:len(FULL)]) for line in path.read_text().splitlines()}
    with open(path, "a", encoding="utf-8") as file:
        def add(name, record):
            values = [pair.split("=")[1] for pair in name.split(" ")]
            hashes = [record.get(field, "")[:16] for field in hashed]
            file.write("\t".join([*values, *hashes, repr(record["loss_nats"])]) + "\n")
            file.flush()
        session.rows([row for row in rows if tuple(row.values()) not in done], done=add)
    found = [dict(zip(columns, line.split("\t"))) for line in path.read_text().splitlines()[1:]]
    alike = {}  # runs that differ in what must change no bit
    for run in found:
        alike.setdefault(tuple(run[name] for name in FULL if name not in ("recompute", "offload")), set()).add(
            tuple(run[column] for column in columns[-4:]))
    print(f"{len(found)} of {len(product)} runs, {len({run['weights_sha256'] for run in found})} distinct weights, "
          f"{len({run['states_sha256'] for run in found})} distinct states; of {len(alike)} groups that differ in recomputation and "
          f"offloading alone {sum(len(records) > 1 for records in alike.values())} end in more than one record")
    return 0


def states(session, scratch):
    STATES.mkdir(exist_ok=True)
    shutil.rmtree(STATES / "data", ignore_errors=True)
    folder = pathlib.Path(scratch) / "states"
    folder.mkdir()
    make_data(session.programs, folder)
    shutil.copytree(folder / "data", STATES / "data")
    whole, cases = {}, {}
    for name, (_, data, flags, threads) in sorted(CASES.items()):
        whole[name] = make_state(session.programs, folder, name)[1]
        cases[name] = {"data": data, "base": "--lora" in flags, "threads": threads, "from": SAVED_STEP, "to": LAST_STEP}
    (STATES / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    return 1 if report("resume", whole, session.resumed(CASES), "of the run that was not stopped") else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--bin", default=SOURCE / "build/release")
    parser.add_argument("command", choices=["check", "missing", "write", "compare", "full", "list", "states"])
    parser.add_argument("argument", nargs="?")
    parser.add_argument("--group", action="append", choices=GROUPS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the temporary folder goes
    options.group = options.group or GROUPS
    if options.command == "list":
        for group, rows in (("pairwise", pairwise_rows()), ("dropout", all_pairs(DROPOUT)), ("ten", all_pairs(TEN))):
            for row in rows:
                print(group, name_of(row))
        for group in sorted(RESUMING):
            for case in cases_of(group):
                print(group, case)
        return 0
    if options.command in ("compare", "full") and not options.argument:
        parser.error(f"{options.command} needs an argument")
    with tempfile.TemporaryDirectory(prefix="trainwright-goldens-") as scratch:
        session = Session(options.bin, pathlib.Path(scratch) / "this", options)
        if options.command == "compare":
            other = Session(options.argument, pathlib.Path(scratch) / "other", options)
            return 1 if sum(report(group, other.group(group), session.group(group), f"with {options.argument}")
                            for group in options.group) else 0
        if options.command == "full":
            return full(session, options.argument)
        if options.command == "states":
            return states(session, scratch)
        if options.command == "missing":
            print("".join(f"{group}\n" for group in read_record(session, options)[2]), end="")
            return 0
        return check(session, options) if options.command == "check" else write(session, options)


if __name__ == "__main__":
    sys.exit(main())
