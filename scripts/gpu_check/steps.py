"""The steps of the check, in the order of what is worth most should the machine go back early. One function a step."""
import contextlib
import hashlib
import json
import math
import pathlib
import re
import shutil
import statistics

from bundle import TESTS
from power import PowerSampler
from runner import NotAvailable, OutOfTime, Step, StepFailed

HERE = pathlib.Path(__file__).resolve().parent
PUBLISHED_TFLOPS = 989.4  # dense bf16 of an H100 SXM and of an H200
RECORDS = 6  # of a run whose speed is measured, or one a step where it has fewer steps


# What steps share.

def shards(runner, chunk, documents):
    """The text as shards of `chunk` tokens: each of its lines a document ("line"), or all of it one ("file")."""
    def make(path):
        tokens = runner.once(f"{documents}.tokens", lambda tokens: runner.run(
            runner.tool("pretokenize"), "--format", {"line": "lines", "file": "file"}[documents], runner.settings.data, "-o",
            tokens))
        runner.run(runner.tool("pack"), "--chunk", str(chunk), "-o", path, tokens)
    return runner.once(f"{documents}-{chunk}", make)


def config(runner, name):
    """One of configs/; of the dry run a small model of the same family."""
    if not runner.settings.tiny:
        return HERE / "configs" / f"{name}.json"
    small = dict(json.loads((HERE / "configs" / f"{name}.json").read_text()))
    gpt2 = small["model_type"] == "gpt2"
    small.update({"n_embd": 32, "n_layer": 1, "n_head": 2} if gpt2 else
                 {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
                  "num_key_value_heads": 1, "head_dim": 16})
    small["vocab_size"] = 300
    return runner.once(f"{name}.json", lambda path: path.write_text(json.dumps(small)))


def train(runner, name, model, seq, batch, steps, *options, documents="line", device=None, keep_state=False, init=None,
          **environment):
    """A run in work/, of a model or from the weights that `init` names. \\returns its records of steps and its first record"""
    out = runner.settings.work / name
    if out.exists():  # of a step that was cut off
        out.rename(runner.settings.work / f"{name}-cut-off-{len(list(runner.settings.work.glob(f'{name}-cut-off-*')))}")
    source = ("--init", init) if init else ("--model", model)
    runner.run(runner.tool("train"), "--data", shards(runner, max(seq, 256), documents), *source, "--seq", str(seq), "--batch",
               str(batch), "--steps", str(steps), "--seed", "1", "--progress", "never", "--save-every", "0", "--device",
               device or runner.settings.device, "--out", out, *([] if keep_state else ["--save-model-only"]), *options,
               **environment)
    return read_run(out)


def read_records(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def read_run(out):
    records = read_records(out)
    return [r for r in records if r["type"] == "step"], next(r for r in records if r["type"] == "run_begin")


def speed(steps, begin):
    """Of the steps behind the first third of the records, which warm up. A record has the mean of the steps since the last one."""
    warm_up = len(steps) // 3
    if warm_up == 0:
        raise StepFailed(f"of {len(steps)} records of steps none can be left out as warm-up")
    settled, warm_up_steps = steps[warm_up:], steps[warm_up - 1]["step"]
    tokens_per_s = statistics.median(step["tokens_per_s"] for step in settled)
    flops = statistics.median(step["model_flops_per_s"] for step in settled)
    return {"tokens_per_s": round(tokens_per_s), "step_time_s": statistics.median(s["step_time_s"] for s in settled),
            "tflops": round(flops / 1e12, 2), "share_of_989_tflops": round(flops / 1e12 / PUBLISHED_TFLOPS, 4),
            "warm_up_steps": warm_up_steps, "measured_steps": steps[-1]["step"] - warm_up_steps,
            # Of the device by the name that torch_gpt2.py has for it, null on a CPU.
            "max_memory_bytes": steps[-1].get("max_device_memory_bytes"), "max_host_memory_bytes": steps[-1]["max_memory_bytes"],
            "loss_nats": steps[-1]["loss_nats"], "parameters": begin["parameters"], "kernels": begin.get("kernels")}


def speed_step(runner, name, model, seq, batch, steps, *options):
    """The speed of a run at bf16 on samples of one document each, with what the GPU drew meanwhile."""
    if runner.settings.tiny:
        seq, batch, steps = min(seq, 128), min(batch, 2), 3
    with PowerSampler() as power:
        records, begin = train(runner, name, model, seq, batch, steps, "--mixed-precision", "bf16", "--log-every",
                               str(max(1, steps // RECORDS)), *options, documents="file")
    return {**speed(records, begin), **power.figures}


def python_torch(runner, script, *arguments):
    """What a script of this folder prints last, as JSON, run by the python3 that has torch."""
    status, text = runner.run("python3", "-c", "import torch", check=False)
    if status != 0:
        raise NotAvailable("python3 has no torch")
    sizes = ["--tiny"] if runner.settings.tiny else []
    _, text = runner.run("python3", HERE / script, *arguments, "--device", runner.settings.device, *sizes)
    return json.loads(text.strip().splitlines()[-1])


@contextlib.contextmanager
def kept_when_time_ends(figures, problems):
    """Around what fills both one by one: where it is cut off, what it has come to is told."""
    try:
        yield
    except OutOfTime as end:
        raise OutOfTime("; ".join([str(end), *problems]), figures) from None


def last(numbers):
    return numbers[-1] if numbers else None


def cases(text, word):
    """How many of a test program's cases are "PASSED" or "SKIPPED"."""
    found = re.search(rf"\[ *{word} *\] (\d+) tests?", text)
    return int(found[1]) if found else 0


# The steps.

def identity(runner):
    """What machine this is, and that the tools see its GPU."""
    figures = {"version": runner.run(runner.tool("train"), "--version")[1].splitlines()[0],
               "torch": str(runner.settings.torch)}
    if shutil.which("nvidia-smi"):
        fields = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,compute_cap"
        status, text = runner.run("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0", check=False)
        if status == 0:
            figures.update(zip(fields.split(","), (value.strip() for value in text.strip().split(","))))
    if runner.settings.device != "cpu":
        runner.run(runner.tool("gpu-probe"), "--quick", "--disk-size", "0", "--require-gpu", "--recommend")
    return figures


def first_steps(runner):
    """Three steps of each family with launches that the host waits for: a fault is told where it happens."""
    figures, problems = {}, []
    seq = 64 if runner.settings.tiny else 256
    with kept_when_time_ends(figures, problems):
        for model in ("llama-1m", "qwen2-0.5b", "nanogpt-10m", "neox-tiny", "ten-nano"):
            if runner.settings.tiny and model == "qwen2-0.5b":
                continue
            for precision in ("no", "bf16", "fp16"):
                if runner.settings.tiny and (precision == "fp16" or model != "llama-1m" and precision != "no"):
                    continue
                name = f"first-{model}-{precision}"
                try:
                    steps, _ = train(runner, name, model, seq, 2, 3, "--mixed-precision", precision, "--log-every", "1",
                                     CUDA_LAUNCH_BLOCKING="1")
                    losses = [step["loss_nats"] for step in steps]
                    figures[f"{model} {precision}"] = last(losses)
                    if len(losses) != 3 or not all(loss is not None and math.isfinite(loss) for loss in losses):
                        problems.append(f"{model} {precision}: losses {losses}")
                except StepFailed as problem:
                    problems.append(f"{model} {precision}: {str(problem)[-300:]}")
    if problems:
        raise StepFailed("; ".join(problems), figures)
    return figures


def gpu_tests(runner):
    """The cases that have cuda in their names, of each test program of a bundle. One without any has failed."""
    figures, failed, unseen = {}, [], []
    with kept_when_time_ends(figures, failed):
        for name in TESTS:
            program = pathlib.Path(runner.test_program(name))
            if not program.exists():
                raise NotAvailable(f"{program} is not built")
            _, text = runner.run(program, "--gtest_filter=*cuda*", "--gtest_brief=1", check=False)
            figures[name] = {word.lower(): cases(text, word) for word in ("PASSED", "SKIPPED")}
            broken = sorted(set(re.findall(r"\[  FAILED  \] (\S+?)[, ].*\(\d+ ms\)", text)))
            figures[name]["failed"] = broken
            failed += broken
            if "PASSED" not in text and "[  FAILED  ]" not in text:
                failed.append(f"{name} died: {text[-500:].strip()}")
            elif not (broken or figures[name]["passed"] or figures[name]["skipped"]):
                failed.append(f"{name} has no case for a GPU")
            if not (broken or figures[name]["passed"]):
                unseen.append(name)
    figures["without_a_case_that_ran"] = unseen
    # Of a dry run most programs have cases for a GPU alone.
    if runner.settings.device != "cpu" and not failed and len(unseen) > (len(TESTS) - 1 if runner.settings.tiny else 0):
        raise StepFailed(f"of {', '.join(unseen)} all cases were skipped: the tests see no GPU", figures)
    if failed:
        raise StepFailed(f"{len(failed)} failed: " + ", ".join(failed)[:1500], figures)
    return figures


def loss_parity(runner):
    """The same run in fp32 on the CPU and on the GPU: losses within 1 % after 50 steps."""
    steps = 5 if runner.settings.tiny else 50
    options = ("--mixed-precision", "no", "--log-every", "1")
    on_cpu, _ = train(runner, "parity-cpu", "llama-1m", 256, 4, steps, *options, device="cpu")
    on_gpu, _ = train(runner, "parity-gpu", "llama-1m", 256, 4, steps, *options)
    cpu_loss, gpu_loss = on_cpu[-1]["loss_nats"], on_gpu[-1]["loss_nats"]
    figures = {"cpu_loss_nats": cpu_loss, "gpu_loss_nats": gpu_loss,
               "first_step_difference": abs(on_cpu[0]["loss_nats"] - on_gpu[0]["loss_nats"])}
    if not abs(cpu_loss - gpu_loss) <= 0.01 * cpu_loss:
        raise StepFailed(f"losses differ: {cpu_loss} on the CPU, {gpu_loss} on the GPU", figures)
    return figures


# What a run has besides, and by how much its losses may differ from the CPU's. Adapters begin with the weights of the first.
FEATURES = (
    ("sgd-offload", "--optimizer sgd --offload all --mixed-precision no", 0.01),
    ("muon-recomputed", "--optimizer muon --checkpoint-activations full --mixed-precision no", 0.01),
    ("lion-bf16-stream", "--optimizer lion --residual-stream bf16 --mixed-precision bf16", 0.02),
    ("adamw8bit", "--optimizer adamw8bit --mixed-precision no", 0.01),
    ("bf16-moments", "--optimizer-states bf16 --mixed-precision no", 0.01),
    ("lora", "--lora 8 --lr 0.003 --mixed-precision no", 0.005),
    ("dora-nf4", "--lora 8 --dora --quant nf4 --lr 0.003 --mixed-precision bf16", 0.008))


def losses_of(runner, name, options, device=None):
    """Of three steps."""
    init = runner.settings.work / "sgd-offload-cpu" if "--lora" in options else None
    records, _ = train(runner, name, "llama-1m", 256, 2, 3, *options.split(), "--warmup", "0", "--schedule", "constant",
                       "--log-every", "1", device=device, init=init)
    return [record["loss_nats"] for record in records]


def difference(on_cpu, on_gpu):
    """Of pairs the largest, as a share of the CPU's; infinite where numbers are missing or none."""
    numbers = [*on_cpu, *on_gpu]
    if not numbers or len(on_cpu) != len(on_gpu) or not all(n is not None and math.isfinite(n) for n in numbers):
        return math.inf
    return max(abs(gpu / cpu - 1) for cpu, gpu in zip(on_cpu, on_gpu))


def printed(runner, tool, *arguments):
    """The JSON object that a tool prints, on the CPU and on the GPU."""
    objects = []
    for device in ("cpu", runner.settings.device):
        _, text = runner.run(runner.tool(tool), "-q", "--device", device, *arguments)
        lines = [line for line in text.splitlines() if line.startswith("{")]
        if not lines:
            raise StepFailed(f"{tool} --device {device} printed no JSON object: {text[-300:]}")
        objects.append(json.loads(lines[0]))
    return objects


def use_of_checkpoints(runner):
    """What evaluate and generate say of a model and of one with an adapter, on the CPU and on the GPU."""
    text = runner.once("some-lines.txt", lambda path: path.write_text("\n".join(
        runner.settings.data.read_text().splitlines()[:40]) + "\n"))
    evaluated = printed(runner, "evaluate", "--checkpoint", runner.settings.work / "sgd-offload-gpu", "--data", text)
    yield "evaluate", [[told["loss_nats"]] for told in evaluated]
    generated = printed(runner, "generate", "--checkpoint", runner.settings.work / "dora-nf4-gpu", "--prompt", "O Romeo",
                        "--max-tokens", "8", "--logprobs", "0", "--format", "jsonl")
    # The first token's: where two are about as probable, what follows may be another text.
    yield "generate", [told["logprobs"][:1] for told in generated]
    if not all(number is not None and math.isfinite(number) for number in generated[1]["logprobs"]):
        raise StepFailed(f"generate's probabilities are {generated[1]['logprobs']}")


def features(runner):
    """Three steps with each optimizer, adapter and way to save memory, evaluate and generate: losses near the CPU's."""
    figures, problems, still = {}, [], {}

    def judge(name, on_cpu, on_gpu, tolerance):
        figures[name] = {"cpu": last(on_cpu), "gpu": last(on_gpu), "difference": difference(on_cpu, on_gpu)}
        if not figures[name]["difference"] <= tolerance:
            problems.append(f"{name}: {on_cpu} on the CPU, {on_gpu} on the GPU")

    with kept_when_time_ends(figures, problems):
        for name, options, tolerance in FEATURES:
            adapter = "--lora 8 " if "--lora" in options else ""
            try:
                on_cpu, on_gpu = losses_of(runner, f"{name}-cpu", options, "cpu"), losses_of(runner, f"{name}-gpu", options)
                judge(name, on_cpu, on_gpu, tolerance)
                if adapter not in still:
                    still[adapter] = losses_of(runner, f"still{'-adapter' * bool(adapter)}",
                                               adapter + "--lr 1e-30 --mixed-precision no", "cpu")
                if not 2 * tolerance < difference(still[adapter], on_cpu) < math.inf:  # a GPU that updates nothing would pass
                    problems.append(f"{name}: without updates losses are {still[adapter]}, with them {on_cpu}: too near to tell")
            except StepFailed as problem:
                problems.append(f"{name}: {str(problem)[-300:]}")
        try:
            for name, (on_cpu, on_gpu) in use_of_checkpoints(runner):
                judge(name, on_cpu, on_gpu, 0.02)
        except StepFailed as problem:
            problems.append(str(problem)[-300:])
    if problems:
        raise StepFailed("; ".join(problems), figures)
    return figures


def gpt2_124m(runner):
    """GPT-2 124M, 64 samples of 1,024 tokens a step, vocabulary 50,257."""
    return speed_step(runner, "gpt2-124m", config(runner, "gpt2-124m"), 1024, 64, 60)


def gpt2_124m_again(runner):
    """The same again: what another run of the same work gives."""
    return speed_step(runner, "gpt2-124m-again", config(runner, "gpt2-124m"), 1024, 64, 60)


def profile_figures(record):
    """Of a record "profile": how busy the GPU was, the shares of its work, GEMMs' rate, and what took longest."""
    of = record["device"] or record  # on a CPU the host's thread does the work
    figures = {"steps": record["last_step"] - record["first_step"] + 1, "wall_time_s": record["wall_time_s"]}
    if record["device"]:
        figures["busy_share"] = round(1 - of["idle_share"], 4)
    figures["gemm_tflops"] = round(record["gemm"]["operations_per_s"] / 1e12, 4)
    figures["shares"] = {name: round(part["share"], 4) for name, part in of["parts"].items() if part["share"] > 0}
    figures["longest_s"] = {each["name"][:100]: each["self_time_s"] for each in (of["kernels"] if record["device"] else of["operators"])[:10]}
    return figures


def kernel_trace(runner):
    """Where the time of GPT-2 124M's step goes, kernel by kernel."""
    seq, batch = (128, 2) if runner.settings.tiny else (1024, 64)
    train(runner, "traced", config(runner, "gpt2-124m"), seq, batch, 12, "--mixed-precision", "bf16", "--profile", "3",
          documents="file")
    run = runner.settings.work / "traced"
    profiles = [record for record in read_records(run) if record["type"] == "profile"]
    if not profiles:
        raise StepFailed("train --profile left no record")
    figures = profile_figures(profiles[-1])
    trace = run / "profile/trace.json"
    if not trace.exists():
        raise StepFailed("train --profile left no trace", figures)
    if trace.stat().st_size < 15 << 20:  # few and small files come home
        shutil.copy(trace, runner.settings.out)
        figures["trace"] = trace.name
    return figures


def llama_1b_8k(runner):
    return speed_step(runner, "llama-1b-8k", config(runner, "llama-1b"), 8192, 2, 30)


def llama_8b_layers_8k(runner):
    return speed_step(runner, "llama-8b-8k", config(runner, "llama-8b-4-layers"), 8192, 2, 30)


def llama_1b_32k(runner):
    return speed_step(runner, "llama-1b-32k", config(runner, "llama-1b"), 32768, 1, 20, "--checkpoint-activations", "selective")


def llama_8b_layers_32k(runner):
    return speed_step(runner, "llama-8b-32k", config(runner, "llama-8b-4-layers"), 32768, 1, 20, "--checkpoint-activations",
                      "selective")


def gpt2_1558m(runner):
    return speed_step(runner, "gpt2-1558m", config(runner, "gpt2-1558m"), 1024, 8, 30)


def ceilings(runner):
    """What the machine reaches: products, memory, copies; which attention takes which heads."""
    probe = runner.settings.work / "gpu-probe.json"
    options = ["--quick", "--disk-size", "0"] if runner.settings.tiny else []
    if runner.settings.device == "cpu":
        options += ["--device", "cpu"]
    runner.run("bash", "-c", '"$0" "$@" > "$OUT_FILE"', runner.tool("gpu-probe"), "--json", "--out", runner.settings.work,
               *options, OUT_FILE=str(probe))
    report = json.loads(probe.read_text())
    best = {f"{m['what']} {m.get('dtype') or ''} {m.get('kernel') or ''}".strip(): m["best"] if "best" in m else m.get("rate")
            for m in report["measured"]}
    return {"gpu_state": report["gpu"]["state"], "best": best}


def operators(runner):
    """The speed of each operator beside torch's own."""
    summary = runner.settings.work / "operators.json"
    sizes = ["--rows", "48", "--width", "128", "--vocabulary", "300", "--rounds", "1", "--precision", "fp32"]
    runner.run(runner.test_program("kernel_speed"), "--device", runner.settings.device, "--summary", summary,
               *(sizes if runner.settings.tiny else ["--precision", "bf16"]))
    rows = json.loads(summary.read_text())["operators"]
    return {"operators": {row["operator"]: {key: row[key] for key in ("bytes_per_s", "time_s", "torch_time_s") if key in row}
                          for row in rows}}


def gemm_shapes(runner):
    """Products of the models' shapes by cuBLAS and cuBLASLt, with the vocabulary as it is and padded."""
    return python_torch(runner, "torch_ceilings.py", "gemms")


def attention_shapes(runner):
    """Attention of the models' shapes, with grouped heads too, by each of torch's backends and by the packed call."""
    return python_torch(runner, "torch_ceilings.py", "attention")


def pytorch_eager(runner):
    return python_torch(runner, "torch_gpt2.py")


def pytorch_compiled(runner):
    return python_torch(runner, "torch_gpt2.py", "--compile")


def ten_small_32k(runner):
    """TEN's preset for samples of 32,768 tokens."""
    if runner.settings.tiny:
        return speed_step(runner, "ten-small-32k", "ten-nano", 256, 1, 3)
    return speed_step(runner, "ten-small-32k", "ten-small-32k", 32768, 4, 12)


def compiled(runner):
    """GPT-2 124M in small micro-batches, kernel by kernel and as graphs: the step's time, and losses that agree."""
    seq, batch, steps = (128, 2, 6) if runner.settings.tiny else (1024, 4, 60)
    figures, losses = {}, {}
    for mode in ("off", "graph"):
        records, _ = train(runner, f"compile-{mode}", config(runner, "gpt2-124m"), seq, batch, steps, "--mixed-precision", "bf16",
                           "--compile", mode, "--log-every", "1", documents="file")
        losses[mode] = records[-1]["loss_nats"]
        figures[f"{mode}_step_time_s"] = statistics.median(record["step_time_s"] for record in records[len(records) // 3:])
    end = read_records(runner.settings.work / "compile-graph")[-1]
    figures.update(end.get("graphs", {}))
    figures["speed_up"] = round(figures["off_step_time_s"] / figures["graph_step_time_s"], 4)
    figures["loss_difference"] = abs(losses["graph"] / losses["off"] - 1)
    if runner.settings.device != "cpu" and not figures.get("launched"):
        raise StepFailed("no micro-batch was launched as a graph", figures)
    if runner.settings.device != "cpu" and not figures.get("updates", {}).get("launched"):
        raise StepFailed("no update was launched as a graph", figures)
    if not figures["loss_difference"] <= 1e-2:
        raise StepFailed("losses differ with --compile graph", figures)
    return figures


def fp8(runner):
    """GPT-2 124M with its MLPs and its head in bf16 and in fp8: the step's time, and losses that agree."""
    seq, batch, steps = (128, 2, 6) if runner.settings.tiny else (1024, 64, 30)
    figures, losses = {}, {}
    for parts in ("off", "mlp", "mlp+head"):
        try:
            records, _ = train(runner, f"fp8-{parts}", config(runner, "gpt2-124m"), seq, batch, steps, "--mixed-precision",
                               "bf16", "--fp8", parts, "--log-every", "1", documents="file")
        except StepFailed as failure:
            if "has no fp8 GEMMs" in str(failure):
                raise NotAvailable("the GPU has no fp8 GEMMs, which begin with compute capability 8.9") from None
            raise
        losses[parts] = records[-1]["loss_nats"]
        figures[f"{parts}_step_time_s"] = statistics.median(record["step_time_s"] for record in records[len(records) // 3:])
    for parts in ("mlp", "mlp+head"):
        figures[f"{parts}_speed_up"] = round(figures["off_step_time_s"] / figures[f"{parts}_step_time_s"], 4)
        figures[f"{parts}_loss_difference"] = abs(losses[parts] / losses["off"] - 1)
        if not 0 < figures[f"{parts}_loss_difference"] <= 2e-2:
            raise StepFailed(f"losses with --fp8 {parts} are those without, or far from them", figures)
    return figures


def reruns(runner):
    """With --deterministic: the same weights again and after a stop in the middle, and what that costs in time."""
    seq, batch, steps = (128, 2, 4) if runner.settings.tiny else (1024, 16, 30)
    digests, times_s = {}, {}

    def run(name, *options):
        records, _ = train(runner, name, config(runner, "gpt2-124m"), seq, batch, steps, "--mixed-precision", "bf16",
                           "--log-every", "1", *options, documents="file", keep_state=name == "resumed")
        settled = records[len(records) // 3:] or [{"step_time_s": 0}]
        times_s[name] = statistics.median(record["step_time_s"] for record in settled)

    run("not-deterministic")
    for name in ("rerun-1", "rerun-2"):
        run(name, "--deterministic")
        digests[name] = weights_digest(runner, name)
    run("resumed", "--deterministic", "--max-minutes", "0.0001")
    runner.run(runner.tool("train"), "--resume", "--out", runner.settings.work / "resumed", "--max-minutes", "0", "--progress",
               "never")
    digests["resumed"] = weights_digest(runner, "resumed")
    deterministic_s = min(times_s["rerun-1"], times_s["rerun-2"])
    figures = {"reruns_equal": digests["rerun-1"] == digests["rerun-2"],
               "resumed_equal": digests["rerun-1"] == digests["resumed"],
               "step_time_s": times_s["not-deterministic"], "deterministic_step_time_s": deterministic_s,
               "cost_of_determinism": round(deterministic_s / times_s["not-deterministic"] - 1, 4),
               "equal_without_it": digests["rerun-1"] == weights_digest(runner, "not-deterministic"), **digests}
    if not (figures["reruns_equal"] and figures["resumed_equal"]):
        raise StepFailed("runs with --deterministic end in different weights", figures)
    return figures


def weights_digest(runner, name):
    newest = sorted((runner.settings.work / name / "checkpoints").glob("step-*"))[-1]
    return hashlib.sha256((newest / "model.safetensors").read_bytes()).hexdigest()[:16]


def sanitizer(runner, tool):
    if not shutil.which("compute-sanitizer"):
        raise NotAvailable("there is no compute-sanitizer")
    status, text = runner.run("compute-sanitizer", "--tool", tool, "--error-exitcode", "1", runner.test_program("nn_test"),
                              "--gtest_filter=*OpsTest*cuda*", "--gtest_brief=1", check=False)
    if status != 0 and "Device not supported" in text:
        raise NotAvailable("compute-sanitizer does not support this device")
    summary = re.findall(r"ERROR SUMMARY: .*|RACECHECK SUMMARY: .*", text)
    if status != 0:
        raise StepFailed(f"status {status}: {text[-1500:].strip()}")
    figures = {"summary": summary[-1] if summary else "", "passed": cases(text, "PASSED")}
    if runner.settings.device != "cpu" and not figures["passed"]:
        raise StepFailed("no case ran under it", figures)
    return figures


def memcheck(runner):
    return sanitizer(runner, "memcheck")


def racecheck(runner):
    return sanitizer(runner, "racecheck")


STEPS = [Step(function.__name__, limit_s, function) for function, limit_s in (
    (identity, 60), (first_steps, 240), (gpu_tests, 240), (loss_parity, 90), (features, 240), (gpt2_124m, 90),
    (gpt2_124m_again, 90), (kernel_trace, 90), (llama_1b_8k, 90), (llama_8b_layers_8k, 90), (llama_1b_32k, 120),
    (llama_8b_layers_32k, 120), (gpt2_1558m, 90), (ceilings, 60), (operators, 90), (gemm_shapes, 90), (attention_shapes, 90),
    (pytorch_eager, 90), (pytorch_compiled, 180), (ten_small_32k, 120), (compiled, 120), (fp8, 120), (reruns, 120),
    (memcheck, 240), (racecheck, 240))]
