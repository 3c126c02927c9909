"""What the runs that ten.py measured say, as Markdown and as a plot."""
import datetime
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import svg_lines  # noqa: E402
from ten_models import MODELS  # noqa: E402

UNTIMED_STEPS = 2
# Relative, of the loss of the first step of train and the PyTorch model from the same weights.
LOSS_BOUND = 1e-3
NAMES = {"train": "TEN, train", "llama": "Llama, train", "eager": "TEN, PyTorch eager", "compiled": "TEN, torch.compile",
         "llama-eager": "Llama, PyTorch eager", "llama-compiled": "Llama, torch.compile", "mamba2": "Mamba2, transformers",
         "scan": "scan, train's kernels", "scan-eager": "scan, PyTorch eager", "scan-compiled": "scan, torch.compile"}
# By which of train's runs the last column compares, where it is not by its TEN.
BASES = {"llama-eager": "llama", "llama-compiled": "llama", "scan": "scan", "scan-eager": "scan", "scan-compiled": "scan"}


def time_of(run, clock="step_times_s"):
    """Of a step that counts, in seconds: wall, or with cpu_times_s of processors."""
    return statistics.median(run[clock][UNTIMED_STEPS:])


def speed(run, clock="step_times_s"):
    return run["tokens"][-1] / time_of(run, clock)


def is_scan(run):
    return run["contestant"].startswith("scan")


def line_of(run):
    memory = f", {run['max_memory_bytes'] / 1e6:.0f} MB" if "max_memory_bytes" in run else ""
    return f"{run['contestant']}: {speed(run):.0f} tokens/s{memory}, {run['process_s']:.0f} s in all"


def spread(values, form):
    """Median, with the least and the greatest where there are several."""
    values = list(values)
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} ({format(min(values), form)} to {format(max(values), form)})"


def grouped(runs):
    """{(model, tokens): {contestant: [run, ...]}}, in the order of NAMES."""
    groups = {}
    for run in sorted(runs, key=lambda run: (run["settings"]["model"], run["settings"]["tokens"],
                                             list(NAMES).index(run["contestant"]), run["round"])):
        key = (run["settings"]["model"], run["settings"]["tokens"])
        groups.setdefault(key, {}).setdefault(run["contestant"], []).append(run)
    return groups


def ratio(own, other):
    """Median over the rounds that have both; None where there is none."""
    others = {run["round"]: run for run in other}
    pairs = [speed(run) / speed(others[run["round"]]) for run in own if run["round"] in others]
    return statistics.median(pairs) if pairs else None


def row(name, of, runs):
    faster = ratio(of.get(BASES.get(name, "train"), []), runs)
    cpu = spread((speed(run, "cpu_times_s") for run in runs), ".0f") if "cpu_times_s" in runs[0] else "-"
    memory = spread((run["max_memory_bytes"] / 1e6 for run in runs), ".0f") if "max_memory_bytes" in runs[0] else "-"
    parameters = f"{runs[0]['parameters'] / 1e6:.2f}M" if "parameters" in runs[0] and not is_scan(runs[0]) else "-"
    return (f"| {NAMES[name]} | {parameters} | {spread((1000 * time_of(run) for run in runs), '.1f')} | "
            f"{spread((speed(run) for run in runs), '.0f')} | {cpu} | {memory} | "
            f"{'-' if faster is None else format(faster, '.2f')} |")


def share_of_scan(of, layers):
    """Of the step that train takes: the scans of all layers, each alone."""
    if "scan" not in of or "train" not in of:
        return ""
    share = layers * statistics.median(map(time_of, of["scan"])) / statistics.median(map(time_of, of["train"]))
    return f"\nThe scans of {layers} layers take {share:.1%} of train's step.\n"


def beside_llama(of):
    """Whether train gains as much over PyTorch with a TEN as it gains with a Llama of as many parameters."""
    lines = []
    for how in ("eager", "compiled"):
        ten, llama = ratio(of.get("train", []), of.get(how, [])), ratio(of.get("llama", []), of.get(f"llama-{how}", []))
        if ten is not None and llama is not None:
            lines.append(f"\nBeside PyTorch, {how}, train is {ten:.2f} times as fast with TEN and {llama:.2f} times with Llama: "
                         f"{'at least' if ten >= llama else 'NOT'} the ratio of Llama.\n")
    return lines


def flatness(runs):
    """Tokens a second of the longest samples beside those of 2,048 tokens."""
    groups, lines = grouped(runs), []
    for model in sorted({model for model, _ in groups}):
        longest = max(tokens for of, tokens in groups if of == model)
        short, long = groups.get((model, 2048), {}), groups[(model, longest)]
        shares = [f"{NAMES[name]} {statistics.median(map(speed, long[name])) / statistics.median(map(speed, short[name])):.2f}"
                  for name in short if name in long and not name.startswith("scan")]
        if longest > 2048 and shares:
            lines.append(f"\n{model}, tokens/s of {longest} tokens over those of 2048: {', '.join(shares)}.\n")
    return lines


def report(runs):
    loads = [run["load"][0] for run in runs]
    out = [f"# The family ten beside its peers, {datetime.date.today()}\n",
           f"{runs[-1]['processor']}; {', '.join(runs[-1]['versions'])}; threads {runs[-1]['settings']['threads']}. fp32, "
           f"{runs[-1]['tokens'][-1]} tokens a step whatever the samples; medians over rounds, the least and the greatest in "
           f"brackets; load {min(loads):.1f} to {max(loads):.1f} before a run. The last column is how many times as fast as "
           "this one train is, with the same model (of Mamba2 with TEN, of scans: its kernels).\n"]
    for (model, tokens), of in grouped(runs).items():
        out += [f"\n## {model}, samples of {tokens} tokens\n",
                "| | parameters | ms a step | tokens/s | tokens a processor's second | peak MB | train is faster by |",
                "|---|---|---|---|---|---|---|"]
        out += [row(name, of, of_name) for name, of_name in of.items()]
        out.append(share_of_scan(of, MODELS[model]["ten"]["num_hidden_layers"]))
        out += beside_llama(of)
    out += flatness(runs) + ["\n" + line for line in differences(runs)]
    return "\n".join(out) + "\n"


def differences(runs):
    """What should be equal and is not."""
    found = []
    for (model, tokens), of in grouped(runs).items():
        for own_name, others in (("train", ("eager", "compiled")), ("llama", ("llama-eager", "llama-compiled"))):
            if own_name not in of:
                continue
            own = of[own_name][0]["losses_nats"][0]
            for name in others:
                for run in of.get(name, []):
                    other = run["losses_nats"][0]
                    if abs(own - other) > LOSS_BOUND * abs(other):
                        found.append(f"{model}, {tokens} tokens, {name}: the first loss is {other:.5f}, train's {own:.5f}")
    return found


def plot(runs, path):
    """Tokens a second against the length of samples: of whole steps."""
    lines = {}
    for (model, tokens), of in grouped(runs).items():
        for name, of_name in of.items():
            if not is_scan(of_name[0]):
                lines.setdefault(f"{model}: {NAMES[name]}", []).append([tokens, statistics.median(map(speed, of_name))])
    if lines:
        path.write_text(svg_lines.svg({"title": "Training with as many tokens a step", "x_label": "tokens of a sample",
                                       "y_label": "tokens/s", "log_x": True, "log_y": True, "lines": lines}))
