"""The runs and the report of ranks.sh."""
import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from train_side_by_side import LLAMA_CONFIG, MODELS, UNTIMED_STEPS, load_average

HERE = os.path.dirname(os.path.abspath(__file__))
SEQUENCE, BATCH = MODELS["llama"]["sequence"], MODELS["llama"]["batch"]
RANKS, THREADS = 2, 2  # of the contest: two ranks of one thread, one of two
ONE_BUCKET_MB = 1 << 20
OVERLAPS = {"overlapped": 25, "one bucket": ONE_BUCKET_MB}


class Network:
    """What lies between the ranks of a run: a rate of the loopback, or a delay of each message, or nothing."""

    def __init__(self, name, rate=None, delay_us=0):
        self.name, self.rate, self.delay_us = name, rate, delay_us

    def command(self, command):
        if self.rate is None:
            return command
        script = (f"ip link set lo up && tc qdisc add dev lo root tbf rate {self.rate} burst 256kb latency 400ms && "
                  'exec "$@"')
        return ["unshare", "--net", "bash", "-c", script, "bash", *command]

    def environment(self, scratch):
        if self.delay_us == 0:
            return {}
        return {"LD_PRELOAD": os.path.join(scratch, "delayed_sockets.so"), "SEND_DELAY_US": str(self.delay_us)}

    def is_permitted(self):
        """What forbids it, or nothing."""
        tried = subprocess.run(self.command(["true"]), capture_output=True, text=True, check=False)
        return None if tried.returncode == 0 else tried.stderr.strip() or f"status {tried.returncode}"

    def bytes_per_s(self):
        """Of all ranks together."""
        units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
        return float(self.rate[:-4]) * units[self.rate[-4:]] / 8


def networks_of(options):
    """(networks, why others are left out)."""
    networks, refused = [], []
    for rate in options.rates.split(","):
        network = Network("loopback") if rate == "free" else Network(f"loopback at {rate}", rate=rate)
        problem = network.is_permitted()
        if problem is None:
            networks.append(network)
        else:
            refused.append(f"{network.name} was not permitted here: {problem}")
    networks += [Network(f"messages {delay} us late", delay_us=int(delay)) for delay in options.delays.split(",") if delay]
    return networks, refused


def run(command, environment=None):
    """Runs a command to its end: (standard output, seconds, CPU seconds with its descendants')."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})}) as process:
        before = os.times()
        out, err = process.communicate()
        after = os.times()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}:\n{err[-3000:]}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return out, time.monotonic() - begin, cpu_s


class Contest:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.join(options.scratch, "runs")
        os.makedirs(self.folder)
        self.config = os.path.join(self.folder, "config.json")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(LLAMA_CONFIG, file)
        self.train = ["train", "--quiet", "--data", os.path.join(options.scratch, "shards"), "--model", self.config,
                      "--seq", str(SEQUENCE), "--batch", str(BATCH), "--save-every", "0", "--mixed-precision",
                      "no" if options.precision == "fp32" else "bf16"]
        initial = os.path.join(self.folder, "initial")
        run([*self.train, "--accum", str(RANKS), "--steps", "1", "--lr", "0", "--out", initial])
        self.initial = os.path.join(initial, "latest")
        self.plan = os.path.join(self.folder, "plan.json")
        self.results = {}

    def ours(self, network, ranks, threads, bucket_mb, accum=None):
        out = os.path.join(self.folder, "run")
        own = ["--nproc", str(ranks), "--ddp-bucket-mb", str(bucket_mb)] if ranks > 1 else []
        command = [*self.train, *own, "--threads", str(threads), "--accum", str(accum or RANKS // ranks), "--steps",
                   str(self.options.steps), "--out", out]
        _, wall_s, cpu_s = run(network.command(command), network.environment(self.options.scratch))
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        shutil.rmtree(out)
        with open(self.plan, "w", encoding="utf-8") as file:
            json.dump(next(record for record in records if record["type"] == "run_begin")["plan"], file)
        steps = [record for record in records if record["type"] == "step"]
        return {"losses_nats": [step["loss_nats"] for step in steps],
                "step_times_s": [step["step_time_s"] for step in steps],
                "model_flops_per_s": [step["model_flops_per_s"] for step in steps], "wall_s": wall_s, "cpu_s": cpu_s}

    def torch(self, network, ranks, threads, bucket_mb):
        command = [sys.executable, os.path.join(HERE, "torch_train.py"), "--init", self.initial, "--plan", self.plan,
                   "--train", os.path.join(self.options.scratch, "chunks.jsonl"), "--steps", str(self.options.steps),
                   "--threads", str(threads), "--accum", str(RANKS // ranks)]
        if ranks > 1:
            command = [sys.executable, os.path.join(HERE, "start_ranks.py"), str(ranks), *command, "--bucket-mb",
                       str(bucket_mb)]
        out, wall_s, cpu_s = run(network.command(command), network.environment(self.options.scratch))
        slowest = max((json.loads(line) for line in out.splitlines() if line.startswith("{")),
                      key=lambda result: statistics.median(result["step_times_s"]))
        return {**slowest, "wall_s": wall_s, "cpu_s": cpu_s}

    def round(self, networks):
        """Each contestant once: one rank, which no network slows, and two on each of them."""
        free = Network("loopback")
        contestants = {("train", 1, free.name, ""): lambda: self.ours(free, 1, THREADS, 25)}
        if not self.options.ours:
            contestants["PyTorch", 1, free.name, ""] = lambda: self.torch(free, 1, THREADS, 25)
        for network in networks:
            for overlap, bucket_mb in OVERLAPS.items():
                contestants["train", RANKS, network.name, overlap] = (
                    lambda network=network, bucket_mb=bucket_mb: self.ours(network, RANKS, THREADS // RANKS, bucket_mb))
                if not self.options.ours:
                    contestants["PyTorch", RANKS, network.name, overlap] = (
                        lambda network=network, bucket_mb=bucket_mb: self.torch(network, RANKS, THREADS // RANKS, bucket_mb))
        for name, contestant in contestants.items():
            before = load_average()
            result = contestant()
            result["load"] = (before, load_average())
            self.results.setdefault(name, []).append(result)
            print(name, f"{step_s(result):.3f} s a step", file=sys.stderr, flush=True)

    def speeds(self, name):
        return [RANKS * BATCH * SEQUENCE / step_s(result) for result in self.results[name]]

    def table(self):
        lines = ["| contestant | ranks | network | exchange | tokens/s, median of each round | against one rank of "
                 f"{THREADS} threads | CPU s | wall s | load 1 min |", "|---|---|---|---|---|---|---|---|---|"]
        for name, results in self.results.items():
            contestant, ranks, network, overlap = name
            speeds, alone = self.speeds(name), self.speeds((contestant, 1, "loopback", ""))
            ratios = [own / base for own, base in zip(speeds, alone)]
            loads = [load for result in results for load in result["load"]]
            lines.append(
                f"| {contestant} | {ranks} x {THREADS // ranks} | {network} | {overlap} | "
                f"{' '.join(f'{speed:.0f}' for speed in speeds)} | {spread(ratios)} | "
                f"{statistics.median(result['cpu_s'] for result in results):.1f} | "
                f"{statistics.median(result['wall_s'] for result in results):.1f} | {min(loads):.1f} to {max(loads):.1f} |")
        return lines

    def comparison_with_torch(self):
        """Ratios to PyTorch, of one process and of ranks on each network."""
        lines = ["", "| train against PyTorch | exchange | round by round |", "|---|---|---|"]
        for name in self.results:
            contestant, ranks, network, overlap = name
            if contestant == "train":
                ratios = [own / theirs for own, theirs in
                          zip(self.speeds(name), self.speeds(("PyTorch", ranks, network, overlap)))]
                place = "one process" if ranks == 1 else f"{ranks} ranks, {network}"
                lines.append(f"| {place} | {overlap} | {spread(ratios)} |")
        return lines

    def losses(self):
        alone = self.results["train", 1, "loopback", ""][0]["losses_nats"]
        worst = max((abs(loss / other - 1) for name, results in self.results.items() if name[:2] == ("train", RANKS)
                     for result in results for loss, other in zip(result["losses_nats"], alone)), default=0)
        return f"\nLargest relative difference of the losses of {RANKS} ranks to those of one: {worst:.1e}."

    def alone_side_by_side(self, ranks):
        """1e12 operations a second of one of so many runs of one thread that share the machine and nothing else."""
        outs = [os.path.join(self.folder, f"alone-{rank}") for rank in range(ranks)]
        processes = [subprocess.Popen([*self.train, "--threads", "1", "--accum", "1", "--steps", str(self.options.steps),
                                       "--out", out]) for out in outs]
        if any(process.wait() != 0 for process in processes):
            sys.exit("a run beside others failed")
        rates = []
        for out in outs:
            with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
                steps = [record for record in map(json.loads, file) if record["type"] == "step"]
            rates.append(statistics.median(step["model_flops_per_s"] for step in steps[UNTIMED_STEPS:]))
            shutil.rmtree(out)
        return statistics.mean(rates) / 1e12

    def told(self, network, ranks, bucket_mb, tflops):
        """What --dry-run tells of a step, the link's rate divided among the ranks that share the loopback."""
        summary = os.path.join(self.folder, "told.json")
        latency_us = network.delay_us or self.options.latency_us
        rate = network.bytes_per_s() / ranks if network.rate else self.options.loopback_bytes_per_s / ranks
        command = [*self.train, "--threads", "1", "--accum", "1", "--steps", str(self.options.steps), "--dry-run", "--world",
                   str(ranks), "--bandwidth", f"{rate:.0f}", "--latency", f"{latency_us}us", "--device-tflops",
                   f"{tflops:.6f}", "--ddp-bucket-mb", str(bucket_mb), "--summary", summary]
        run(command)
        with open(summary, encoding="utf-8") as file:
            return json.load(file)["world"]["worlds"][0]["sharding"][0]

    def foretelling(self, networks):
        lines = ["", "## Foretold", "",
                 "A rank computes as fast as one of as many runs of one thread that share the machine, its update included. "
                 f"The free loopback is taken for {self.options.loopback_bytes_per_s / 1e9:g} GB/s of all ranks together, "
                 f"its messages for {self.options.latency_us} us.", "",
                 "| ranks | network | exchange | told s | measured s | told / measured | told MB a rank | hidden |",
                 "|---|---|---|---|---|---|---|---|"]
        for ranks in (1, 2, 4):
            tflops = self.alone_side_by_side(ranks)
            for network in networks if ranks > 1 else networks[:1]:
                for overlap, bucket_mb in OVERLAPS.items() if ranks > 1 else [("", 25)]:
                    told = self.told(network, ranks, bucket_mb, tflops)
                    measured = [step_s(self.ours(network, ranks, 1, bucket_mb, accum=1))
                                for _ in range(self.options.rounds)]
                    measured_s = statistics.median(measured)
                    hidden = told["hidden_time_s"] / told["link_time_s"] if told["link_time_s"] > 0 else 0
                    lines.append(
                        f"| {ranks} | {network.name} | {overlap} | {told['step_time_s']:.3f} | {measured_s:.3f} "
                        f"({min(measured):.3f} to {max(measured):.3f}) | {told['step_time_s'] / measured_s:.2f} | "
                        f"{told['gradients']['sent_bytes'] / 1e6:.1f} | {hidden:.0%} |")
        return lines


def step_s(result):
    return statistics.median(result["step_times_s"][UNTIMED_STEPS:])


def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--rates", default="free,4gbit,1gbit")
    parser.add_argument("--delays", default="500")
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--foretell", action="store_true")
    parser.add_argument("--latency-us", type=int, default=50)
    parser.add_argument("--loopback-bytes-per-s", type=float, default=4e9)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    networks, refused = networks_of(options)
    contest = Contest(options)
    for _ in range(options.rounds):
        contest.round(networks)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next(line for line in file if line.startswith("model name")).split(":")[1].strip()
    lines = [f"# Ranks of train beside PyTorch's, {datetime.date.today()}\n",
             f"{os.cpu_count()} processors of an {cpu}; {options.rounds} interleaved rounds of {options.steps} steps of "
             f"{RANKS * BATCH * SEQUENCE} tokens in {options.precision}, the first {UNTIMED_STEPS} not timed. CPU and wall "
             "seconds are of whole runs with their start. All ranks share the loopback's rate.\n", *contest.table()]
    if not options.ours:
        lines += contest.comparison_with_torch()
    lines.append(contest.losses())
    if options.foretell:
        lines += contest.foretelling(networks)
    lines += [f"\n{problem}" for problem in refused]
    report = "\n".join(lines) + "\n"
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(report)
    else:
        print(report)


if __name__ == "__main__":
    main()
