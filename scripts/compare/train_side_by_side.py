"""The runs and the report of train.sh."""
import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

UNTIMED_STEPS = 3
VOCABULARY, WIDTH, LAYERS = 32000, 384, 6
MODELS = {
    "nanogpt": {"sequence": 256, "batch": 8, "weights": LAYERS * 12 * WIDTH * WIDTH + VOCABULARY * WIDTH},
    "llama": {"sequence": 512, "batch": 4,
              "weights": LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * 1024) + VOCABULARY * WIDTH},
}
LLAMA_CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": VOCABULARY,
    "hidden_size": WIDTH, "intermediate_size": 1024, "num_hidden_layers": LAYERS, "num_attention_heads": 6,
    "num_key_value_heads": 6, "head_dim": 64, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": False,
}


def load_average():
    return os.getloadavg()[0]


def run(command):
    """Runs a command to its end: (standard output, start in Unix seconds)."""
    start = time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{err[-3000:]}")
    return out, start


def peak_gemm(dtype):
    """GFLOP/s of the best product of PyTorch's at these models' sizes; in a process of its own."""
    program = f"""
import time, torch
best = 0
for m, k, n in ((2048, 384, 1536), (2048, 1536, 384), (2048, 384, 32000), (2048, 2048, 2048)):
    a, b = torch.randn(m, k, dtype=torch.{dtype}), torch.randn(n, k, dtype=torch.{dtype})
    for _ in range(8):
        start = time.perf_counter()
        torch.mm(a, b.t())
        best = max(best, 2e-9 * m * k * n / (time.perf_counter() - start))
print(best)"""
    return float(run([sys.executable, "-c", program])[0])


class Contest:
    def __init__(self, options, model, precision):
        self.options, self.model, self.precision = options, model, precision
        self.folder = os.path.join(options.scratch, f"{model}-{precision}")
        os.makedirs(self.folder)
        config = "nanogpt-10m"
        if model == "llama":
            config = os.path.join(self.folder, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump(LLAMA_CONFIG, file)
        shape = MODELS[model]
        self.train = ["train", "--quiet", "--data", os.path.join(options.scratch, "shards"), "--model", config,
                      "--seq", str(shape["sequence"]), "--batch", str(shape["batch"]), "--save-every", "0",
                      "--mixed-precision", "no" if precision == "fp32" else "bf16"]
        self.tokens = shape["sequence"] * shape["batch"]
        attention = 4 * LAYERS * shape["sequence"] * WIDTH
        self.gflop_a_step = 3e-9 * self.tokens * (2 * shape["weights"] + attention)
        initial = os.path.join(self.folder, "initial")
        run(self.train + ["--steps", "1", "--lr", "0", "--out", initial])
        self.initial = os.path.join(initial, "latest")
        self.plan = os.path.join(self.folder, "plan.json")
        self.results, self.yardsticks, self.evaluations = {}, {}, []

    def ours(self):
        out = os.path.join(self.folder, "run")
        summary = os.path.join(self.folder, "summary.json")
        _, start = run(self.train + ["--steps", str(self.options.steps), "--out", out, "--summary", summary])
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        shutil.rmtree(out)
        with open(self.plan, "w", encoding="utf-8") as file:
            json.dump(next(record for record in records if record["type"] == "run_begin")["plan"], file)
        steps = [record for record in records if record["type"] == "step"]
        with open(summary, encoding="utf-8") as file:
            whole = json.load(file)
        return {"losses_nats": [step["loss_nats"] for step in steps],
                "step_times_s": [step["step_time_s"] for step in steps],
                "ready_s": steps[0]["time_unix_s"] - steps[0]["step_time_s"] - start,
                "max_memory_bytes": whole["max_memory_bytes"]}

    def evaluate(self):
        """Tokens/s of `evaluate`, from the times for many tokens and for few: its start-up falls out. The loss of many."""
        def once(data):
            begin = time.monotonic()
            out, _ = run(["evaluate", "--quiet", "--checkpoint", self.initial, "--data",
                          os.path.join(self.options.scratch, data), "--seq", str(MODELS[self.model]["sequence"]),
                          "--batch", str(MODELS[self.model]["batch"]),
                          "--mixed-precision", "no" if self.precision == "fp32" else "bf16"])
            return json.loads(out), time.monotonic() - begin
        few, few_s = once("evaluation_few")
        many, many_s = once("evaluation")
        return {"tokens_per_s": (many["tokens"] - few["tokens"]) / (many_s - few_s), "loss_nats": many["loss_nats"]}

    def hf_trainer(self):
        return self.torch("--evaluation", os.path.join(self.options.scratch, "evaluation.jsonl"),
                          script="hf_trainer.py")

    def torch(self, *flags, script="torch_train.py"):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
        command = [sys.executable, script, "--init", self.initial, "--plan", self.plan, "--train",
                   os.path.join(self.options.scratch, "chunks.jsonl"), "--steps", str(self.options.steps)]
        out, start = run(command + list(flags))
        result = json.loads(out.splitlines()[-1])
        result["imported_s"] = result["imported_unix_s"] - start
        result["ready_s"] = result["first_micro_batch_unix_s"] - start
        return result

    def round(self):
        contestants = {"train": self.ours, "PyTorch eager": self.torch}
        if self.options.compile:
            contestants["torch.compile"] = lambda: self.torch("--compile")
        if self.options.hf and self.model == "llama":
            contestants["HF Trainer"] = self.hf_trainer
            self.evaluations.append(self.evaluate())
        for name, contestant in contestants.items():
            before = load_average()
            result = contestant()
            result["load"] = (before, load_average())
            self.results.setdefault(name, []).append(result)
            timed = statistics.median(result["step_times_s"][UNTIMED_STEPS:])
            print(f"{self.model} {self.precision} {name}: {self.tokens / timed:.0f} tokens/s", file=sys.stderr,
                  flush=True)

    def run_yardsticks(self):
        """Losses of PyTorch loops that are not timed."""
        self.yardsticks["PyTorch eager, its norm summed in float64"] = self.torch("--double-norm")
        if self.precision == "fp32":
            self.yardsticks["PyTorch, all in float64"] = self.torch("--double")

    def loss_table(self):
        curves = {"train": self.results["train"][0], "PyTorch eager": self.results["PyTorch eager"][0],
                  **self.yardsticks}
        others = [name for name in curves if name != "train"]
        lines = [f"\nLargest relative difference of the losses in {self.options.steps} steps (train ends at "
                 f"{curves['train']['losses_nats'][-1]:.5f} nats):\n", "| | " + " | ".join(others) + " |",
                 "|---|" + "---|" * len(others)]
        for name, curve in curves.items():
            cells = ("" if other == name else
                     f"{max(abs(a / b - 1) for a, b in zip(curve['losses_nats'], curves[other]['losses_nats'])):.1e}"
                     for other in others)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return lines

    def evaluation_report(self, speeds):
        theirs = self.results["HF Trainer"]
        ours_per_s = [evaluation["tokens_per_s"] for evaluation in self.evaluations]
        theirs_per_s = [result["evaluation_tokens"] / result["evaluation_time_s"] for result in theirs]
        ratios = [a / b for a, b in zip(ours_per_s, theirs_per_s)]
        training = [a / b for a, b in zip(speeds["train"], speeds["HF Trainer"])]
        return (f"\nAgainst HF Trainer: training {statistics.median(training):.2f} times as fast ({min(training):.2f} to "
                f"{max(training):.2f}); evaluation {statistics.median(ratios):.2f} times ({min(ratios):.2f} to "
                f"{max(ratios):.2f}): {statistics.median(ours_per_s):.0f} against {statistics.median(theirs_per_s):.0f} "
                f"tokens/s of {theirs[0]['evaluation_tokens']} tokens, loss {self.evaluations[0]['loss_nats']:.5f} against "
                f"{theirs[0]['evaluation_loss_nats']:.5f} nats. HF Trainer "
                f"trains after its evaluations: its first micro-batch and its memory are not comparable.")

    def report(self, peak):
        speeds = {name: [self.tokens / statistics.median(r["step_times_s"][UNTIMED_STEPS:]) for r in results]
                  for name, results in self.results.items()}
        eager = self.results["PyTorch eager"]
        lines = [f"\n## {self.model}, {self.precision}\n",
                 "| contestant | tokens/s, median of each round | against eager, round by round | GFLOP/s | share of "
                 "PyTorch's best product | peak memory MB | against eager | first step s | load 1 min |",
                 "|---|---|---|---|---|---|---|---|---|"]
        for name, results in self.results.items():
            ratios = [own / base for own, base in zip(speeds[name], speeds["PyTorch eager"])]
            gflops = statistics.median(speeds[name]) / self.tokens * self.gflop_a_step
            memory = statistics.median(r["max_memory_bytes"] for r in results)
            base = statistics.median(r["max_memory_bytes"] for r in eager)
            loads = [load for r in results for load in r["load"]]
            lines.append(
                f"| {name} | {' '.join(f'{s:.0f}' for s in speeds[name])} | {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f}) | {gflops:.0f} | {gflops / peak:.0%} | {memory / 1e6:.0f} | "
                f"{memory / base:.0%} | {max(r['step_times_s'][0] for r in results):.1f} | "
                f"{min(loads):.1f} to {max(loads):.1f} |")
        if self.options.losses:
            lines += self.loss_table()
        if self.evaluations:
            lines.append(self.evaluation_report(speeds))
        lines.append(f"\nFirst micro-batch of train after {max(r['ready_s'] for r in self.results['train']):.2f} s at "
                     f"the latest; PyTorch imported after {min(r['imported_s'] for r in eager):.2f} s at the earliest, "
                     f"its first micro-batch after {min(r['ready_s'] for r in eager):.2f} s.")
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--models", default="nanogpt,llama")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--hf", action="store_true")
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    contests = [Contest(options, model, precision) for model in options.models.split(",")
                for precision in options.precisions.split(",")]
    for _ in range(options.rounds):
        for contest in contests:
            contest.round()
    if options.losses:
        for contest in contests:
            contest.run_yardsticks()
    peaks = {name: peak_gemm(dtype) for name, dtype in (("fp32", "float32"), ("bf16", "bfloat16"))
             if name in options.precisions.split(",")}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line for line in file if line.startswith("model name")).split(":")[1].strip()
    best = ", ".join(f"{name} {peak:.0f} GFLOP/s" for name, peak in peaks.items())
    report = "\n".join([
        f"# train beside PyTorch, {datetime.date.today()}\n",
        f"{os.cpu_count()} processors of an {cpu}, as many threads; {options.rounds} interleaved rounds of "
        f"{options.steps} steps, the first {UNTIMED_STEPS} not timed. Best product of PyTorch's own at these sizes: "
        f"{best}. FLOPs counted: 2 a matrix weight and token and 4 L T D for attention (the whole square), times 3."]
        + [contest.report(peaks[contest.precision]) for contest in contests]) + "\n"
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(report)
    else:
        print(report)


if __name__ == "__main__":
    main()
