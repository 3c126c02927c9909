"""The runs and the report of train.sh, by the protocol of protocol.py.

`train` starts anew in each round and its first three steps are not timed. PyTorch's contestants and HF Trainer stay alive between
rounds, each having taken three steps before the first, in which they compile; they go on with the steps that follow. HF Trainer
evaluates the first weights in a process of its own, which has evaluated two batches before. The losses of the steps that are not
timed must be those of `train`. Work is tokens.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import protocol
from protocol import Comparison, Contestant, Worker
from train_runs import figures_of, records_of, version_of

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("torch", "transformers")
UNTIMED_STEPS, UNTIMED_BATCHES = 3, 2
PEERS = ("pytorch", "hf")
# Relative, of the losses of the steps that are not timed.
LOSS_BOUND = {"fp32": 1e-3, "bf16": 1e-2}
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


class Contest:
    def __init__(self, options, model, precision):
        self.options, self.model, self.precision = options, model, precision
        self.folder = pathlib.Path(options.scratch) / f"{model}-{precision}"
        self.folder.mkdir()
        config = "nanogpt-10m"
        if model == "llama":
            config = self.folder / "config.json"
            config.write_text(json.dumps(LLAMA_CONFIG))
        shape = MODELS[model]
        self.train = ["train", "--quiet", "--data", os.path.join(options.scratch, "shards"), "--model", str(config),
                      "--seq", str(shape["sequence"]), "--batch", str(shape["batch"]), "--save-every", "0", "--log-every", "1",
                      "--mixed-precision", "no" if precision == "fp32" else "bf16"]
        self.tokens = shape["sequence"] * shape["batch"]
        attention = 4 * LAYERS * shape["sequence"] * WIDTH
        self.gflop_a_token = 3e-9 * (2 * shape["weights"] + attention)
        initial = self.folder / "initial"
        run(self.train + ["--steps", "1", "--lr", "0", "--out", str(initial)])
        self.initial, self.plan = str(initial / "latest"), str(self.folder / "plan.json")
        self.ready_s, self.losses_nats = {}, {}

    def ours(self, threads, steps):
        """What a run of so many steps reports."""
        out = self.folder / "run"
        summary = self.folder / "summary.json"
        _, start = run(self.train + ["--threads", str(threads), "--steps", str(steps), "--out", str(out), "--summary", str(summary)])
        records = records_of(out)
        shutil.rmtree(out)
        pathlib.Path(self.plan).write_text(json.dumps(next(record for record in records if record["type"] == "run_begin")["plan"]))
        told = figures_of(records)
        first = next(record for record in records if record["type"] == "step")
        self.ready_s.setdefault("train", []).append(first["time_unix_s"] - first["step_time_s"] - start)
        told["max_memory_bytes"] = json.loads(summary.read_text())["max_memory_bytes"]
        return told

    def torch_command(self, *flags, script="torch_train.py"):
        return [sys.executable, HERE / script, "--init", self.initial, "--plan", self.plan, "--train",
                os.path.join(self.options.scratch, "chunks.jsonl"), *flags]

    def worker(self, mode, threads, *flags, script="torch_train.py"):
        return Worker(self.torch_command("--threads", threads, *(["--compile", mode] if mode else []), *flags, script=script),
                      longest_s=self.options.longest_answer)

    def warm(self, name, worker):
        told = worker.ask(steps=UNTIMED_STEPS)
        self.losses_nats[name] = told["losses_nats"]
        self.ready_s.setdefault(name, []).append(told["first_micro_batch_unix_s"] - worker.started_unix_s)

    def evaluate(self, threads):
        """Of many tokens less that of few: its start-up falls out."""
        def once(data):
            done = protocol.run_command(
                ["evaluate", "--quiet", "--checkpoint", self.initial, "--data", os.path.join(self.options.scratch, data), "--seq",
                 MODELS[self.model]["sequence"], "--batch", MODELS[self.model]["batch"], "--threads", threads,
                 "--mixed-precision", "no" if self.precision == "fp32" else "bf16"])
            return json.loads(done.stdout), done
        (few, few_took), (many, many_took) = once("evaluation_few"), once("evaluation")
        return many_took.sample(many["tokens"] - few["tokens"], few_took, loss_nats=many["loss_nats"])

    def pytorch(self, mode_name, mode, threads, workers):
        name, worker = f"PyTorch, {mode_name}", self.worker(mode, threads, "--serve")
        workers.append(worker)
        return Contestant(name, lambda: worker.sample(steps=self.options.steps), "PyTorch", lambda: self.warm(name, worker))

    def hf_trainer(self, mode_name, mode, threads, workers):
        """Its training and its evaluation are two aspects, each of a process of its own."""
        name, training = f"HF Trainer, {mode_name}", self.worker(mode, threads, script="hf_trainer.py")
        evaluation = self.worker(mode, threads, "--evaluation", os.path.join(self.options.scratch, "evaluation.jsonl"),
                                 script="hf_trainer.py")
        workers += [training, evaluation]

        def prepare():
            self.warm(name, training)
            evaluation.ask(batches=UNTIMED_BATCHES)

        return Contestant(name, lambda: {"": training.sample(steps=self.options.steps), "evaluation": evaluation.sample()},
                          "HF Trainer", prepare)

    def contestants(self, threads, workers):
        """Ours first. What stays alive between rounds is added to `workers`."""
        hf, modes = "hf" in self.options.peers and self.model == "llama", protocol.torch_modes(self.options).items()

        def train():
            told = protocol.timed_steps(self.ours(threads, self.options.steps + UNTIMED_STEPS), UNTIMED_STEPS)
            return {"": told, "evaluation": self.evaluate(threads)} if hf else told

        makers = ([self.pytorch] if "pytorch" in self.options.peers else []) + ([self.hf_trainer] if hf else [])
        return [Contestant("train", train)] + [make(name, mode, threads, workers) for make in makers for name, mode in modes]

    def compare(self, record, threads):
        """Every contestant, pinned to as many processors as it has threads."""
        steps, workers = self.options.steps, []
        # For the plan, which a run of fewer steps would not have: schedules are alike from the first step on.
        self.losses_nats = {"train": self.ours(threads, steps + UNTIMED_STEPS)["losses_nats"][:UNTIMED_STEPS]}
        contestants = self.contestants(threads, workers)
        name = f"{self.model}, {self.precision}, threads {threads}"
        try:
            record.run(Comparison(name, "tokens", contestants, threads=threads, settings={"steps": steps},
                                  **protocol.how(self.options)))
        finally:
            for worker in workers:
                worker.close()
        if len(self.losses_nats) > 1:  # where nothing was measured, those of before are there
            record.extra.setdefault("first_losses", {})[name] = self.losses_nats
        record.extra.setdefault("gflop_a_token", {})[name] = self.gflop_a_token
        record.extra.setdefault("ready_s", {}).setdefault(name, {who: statistics.median(s) for who, s in self.ready_s.items()})

    def beside(self, other, record, threads):
        """Ours in this precision beside ours in another."""
        def contestant(own):
            return Contestant(f"train, {own.precision}", lambda: protocol.timed_steps(
                own.ours(threads, self.options.steps + UNTIMED_STEPS), UNTIMED_STEPS))
        record.run(Comparison(f"{self.model}, {self.precision} beside {other.precision}, threads {threads}", "tokens",
                              [contestant(self), contestant(other)], threads=threads, settings={"steps": self.options.steps},
                              **protocol.how(self.options)))

    def losses(self, steps):
        """Markdown of how far losses differ, those of PyTorch loops in float64 included."""
        curves = {"train": self.ours(os.cpu_count(), steps)["losses_nats"]}
        yardsticks = {"PyTorch eager": (), "PyTorch eager, its norm summed in float64": ("--double-norm",),
                      **({"PyTorch, all in float64": ("--double",)} if self.precision == "fp32" else {})}
        for name, flags in yardsticks.items():
            out, _ = run(list(map(str, self.torch_command("--steps", steps, *flags))))
            curves[name] = json.loads(out.splitlines()[-1])["losses_nats"]
        others = [name for name in curves if name != "train"]
        lines = [f"\n{self.model}, {self.precision}: largest relative difference of the losses in {steps} steps (train ends at "
                 f"{curves['train'][-1]:.5f} nats):\n", "| | " + " | ".join(others) + " |", "|---|" + "---|" * len(others)]
        for name, curve in curves.items():
            cells = ("" if other == name else f"{max(abs(a / b - 1) for a, b in zip(curve, curves[other])):.1e}" for other in others)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)


def differences(record):
    """What should be equal and is not."""
    return [line for name, told in record.extra.get("first_losses", {}).items() for line in protocol.loss_differences(
        name, told["train"], {who: losses for who, losses in told.items() if who != "train"}, LOSS_BOUND[name.split(", ")[1]])]


def extra_text(record):
    """Markdown of what else a run shows."""
    lines = ["", "## Memory, start, arithmetic", "", "FLOPs counted: 2 a matrix weight and token and 4 L T D for attention (the whole "
             "square), times 3. First micro-batch: seconds after the start of the process.", "",
             "| | contestant | peak memory MB | first micro-batch s | GFLOP a CPU second or second |", "|---|---|---:|---:|---:|"]
    for state in record.states:
        results = protocol.Results(state)
        for name in results.contestants(""):
            peak = max(sample["max_memory_bytes"] for sample in results.samples(name, "").values()) / 1e6
            ready = record.extra.get("ready_s", {}).get(state["name"], {}).get(name)
            gflop = record.extra.get("gflop_a_token", {}).get(state["name"])
            lines.append(f"| {state['name']} | {name} | {peak:.0f} | {'' if ready is None else f'{ready:.2f}'} | "
                         f"{'' if gflop is None else f'{gflop * statistics.median(results.rates(name)):.0f}'} |")
    lines += ["", *[f"**Not the same work:** {line}." for line in differences(record)]]
    return "\n".join(lines + list(record.extra.get("losses", {}).values())) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--models", default="nanogpt,llama")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--losses", type=int, nargs="?", const=50)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["pytorch"])
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"--peers: unknown {', '.join(sorted(unknown))}: one of {', '.join(PEERS)}")
    record = protocol.Record(options.out, "train beside PyTorch", "scripts/compare/train.sh", notes=(
        f"{', '.join(map(version_of, PACKAGES))}. {options.steps} steps of 2,048 tokens a round. What is timed is said in "
        "train_side_by_side.py."))
    record.after = extra_text
    for model in options.models.split(","):
        contests = {}
        for precision in options.precisions.split(","):
            contests[precision] = contest = Contest(options, model, precision)
            for threads in map(int, options.threads.split(",")):
                contest.compare(record, threads)
            if options.losses:
                record.extra.setdefault("losses", {})[f"{model}, {precision}"] = contest.losses(options.losses)
            record.write()
        if "pytorch" in options.peers and {"fp32", "bf16"} <= contests.keys():
            for threads in map(int, options.threads.split(",")):
                contests["bf16"].beside(contests["fp32"], record, threads)
    return protocol.exit_status(differences(record))


if __name__ == "__main__":
    sys.exit(main())
