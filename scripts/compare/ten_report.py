"""What the comparisons that ten.py made say, as Markdown and as a plot."""
import pathlib
import statistics
import sys

import protocol

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import svg_lines  # noqa: E402
from ten_models import MODELS  # noqa: E402

UNTIMED_STEPS = 2
# Relative, of the loss of the first step of train and the PyTorch model from the same weights.
LOSS_BOUND = 1e-3
NAMES = {"train": "TEN, train", "llama": "Llama, train",
         **{name: f"TEN, PyTorch {name}" for name in protocol.TORCH_MODES},
         **{f"llama-{name}": f"Llama, PyTorch {name}" for name in protocol.TORCH_MODES}, "mamba2": "Mamba2, transformers",
         "scan": "scan, train's kernels", **{f"scan-{name}": f"scan, PyTorch {name}" for name in protocol.TORCH_MODES}}
# By what name the modes of a peer are compared.
PEERS = {**{name: "TEN, PyTorch" for name in protocol.TORCH_MODES}, **{f"llama-{name}": "Llama, PyTorch" for name in protocol.TORCH_MODES},
         **{f"scan-{name}": "scan, PyTorch" for name in protocol.TORCH_MODES}}


def is_scan(state):
    return state["name"].startswith("scan, ")


def of_steps(record):
    """[(state, its Results)] of whole steps, by model and length of samples."""
    states = [state for state in record.states if not is_scan(state)]
    return [(state, protocol.Results(state))
            for state in sorted(states, key=lambda state: (state["settings"]["model"], state["settings"]["tokens"]))]


def middle(results, name):
    """The median rate of a contestant; None where it has none."""
    rates = results.rates(name)
    return statistics.median(rates) if rates else None


def beside_llama(results):
    """Whether train gains as much over PyTorch with a TEN as it gains with a Llama of as many parameters."""
    lines = []
    for how in protocol.TORCH_MODES:
        ten = results.ratios(NAMES[how], "", NAMES["train"])
        llama = results.ratios(NAMES[f"llama-{how}"], "", NAMES["llama"])
        if ten and llama:
            ten, llama = statistics.median(ten), statistics.median(llama)
            lines.append(f"Beside PyTorch, {how}, train is {ten:.2f} times as fast with TEN and {llama:.2f} times with Llama: "
                         f"{'at least' if ten >= llama else 'NOT'} the ratio of Llama.")
    return lines


def share_of_scan(record, state, results):
    """Of the step that train takes: the scans of all layers, each alone."""
    scans = next((protocol.Results(other) for other in record.states if other["name"] == f"scan, {state['name']}"), None)
    scan, step = scans and middle(scans, NAMES["scan"]), middle(results, NAMES["train"])
    if not scan or not step:
        return []
    layers = MODELS[state["settings"]["model"]]["ten"]["num_hidden_layers"]
    return [f"The scans of {layers} layers take {layers * step / scan:.1%} of train's step."]


def flatness(record):
    """Rates of the longest samples beside those of 2,048 tokens."""
    lines, of_model = [], {}
    for state, results in of_steps(record):
        of_model.setdefault(state["settings"]["model"], {})[state["settings"]["tokens"]] = results
    for model, by_tokens in of_model.items():
        longest = max(by_tokens)
        if longest <= 2048 or 2048 not in by_tokens:
            continue
        shares = [f"{name} {middle(by_tokens[longest], name) / middle(by_tokens[2048], name):.2f}"
                  for name in by_tokens[2048].contestants("") if middle(by_tokens[longest], name)]
        lines.append(f"{model}, tokens of {longest}-token samples over those of 2048: {', '.join(shares)}.")
    return lines


def differences(record):
    """What should be equal and is not."""
    found = []
    for state, results in of_steps(record):
        for own_name, others in (("train", list(protocol.TORCH_MODES)), ("llama", [f"llama-{name}" for name in protocol.TORCH_MODES])):
            samples = results.samples(NAMES[own_name], "")
            if not samples:
                continue
            own = next(iter(samples.values()))["losses_nats"][0]
            for name, other in record.extra.get("first_losses", {}).get(state["name"], {}).items():
                if name in others and abs(own - other) > LOSS_BOUND * abs(other):
                    found.append(f"{state['name']}, {name}: the first loss is {other:.5f}, train's {own:.5f}")
    return found


def text(record):
    lines = ["", "## What follows", ""]
    for state, results in of_steps(record):
        for line in share_of_scan(record, state, results) + beside_llama(results):
            lines += [f"{state['name']}: {line}", ""]
    for line in flatness(record) + differences(record):
        lines += [line, ""]
    lines += ["| | contestant | parameters | peak MB |", "|---|---|---:|---:|"]
    for state, results in of_steps(record):
        for name in results.contestants(""):
            last = list(results.samples(name, "").values())[-1]
            lines.append(f"| {state['name']} | {name} | {last['parameters'] / 1e6:.2f}M | {last['max_memory_bytes'] / 1e6:.0f} |")
    return "\n".join(lines) + "\n"


def plot(record, path):
    """Rates against the length of samples: of whole steps."""
    lines = {}
    for state, results in of_steps(record):
        for name in results.contestants(""):
            lines.setdefault(f"{state['settings']['model']}: {name}", []).append([state["settings"]["tokens"], middle(results, name)])
    if lines:
        path.write_text(svg_lines.svg({"title": "Training with as many tokens a step", "x_label": "tokens of a sample",
                                       "y_label": "tokens a CPU second", "log_x": True, "log_y": True, "lines": lines}))
