"""What the comparisons that grit_speed.py made say of goals, memory and losses, as Markdown."""
import protocol

UNTIMED_STEPS = 2
# Of training, over any peer, where padding is half or more of what is computed; where lengths are equal it is to be as much
# faster as plain training is. Of peak memory, the most.
LEAST_RATIO_UNLIKE = 2.5
MOST_MEMORY = 0.5
# Relative, of the loss of the first step: in bf16 scores of some tens are rounded to an eighth before they are exponents.
LOSS_BOUND = {"fp32": 1e-3, "bf16": 5e-2}
# sentence-transformers as it is, and compiled by the other modes.
LIBRARY = ["sentence-transformers" + ("" if mode is None else f"-{name}") for name, mode in protocol.TORCH_MODES.items()]
NAMES = {"train": "train", **{name: name.replace("-transformers-", "-transformers, ") for name in LIBRARY},
         **{name + order: f"PyTorch {name}, {words}" for name in protocol.TORCH_MODES
            for order, words in (("", "padded"), ("-sorted", "sorted by length"))}}
PEERS = {name: "sentence-transformers" if name in LIBRARY else "PyTorch" for name in NAMES if name != "train"}
NOTES = ("A query has a positive and a negative passage. All take the same records in the same steps, from the same first weights, "
         "without dropout. Useful tokens are those of texts, padding is none.")


def goal_of(state, plain_ratios):
    """None: nobody has said it. plain_ratios: by precision, how much faster than a peer plain training of such a model is."""
    settings = state["settings"]
    return LEAST_RATIO_UNLIKE if settings["lengths"] == "unlike" else plain_ratios.get(settings["precision"])


def detail(results, name, key):
    """The greatest of a detail of a contestant's samples."""
    return max(sample.get(key, 1.0) for sample in results.samples(name, "").values())


def stands(results, name, goal, of_what):
    """How train stands to a contestant. Another that failed might have been the best: nothing is established then."""
    told, failed = results.statement(name, goal=goal), results.state["failed"]
    judged = ("no goal without plain training's ratio: --plain-ratio" if goal is None else
              f"goal {goal:.2f}: not established, as {', '.join(failed)} failed" if failed else f"goal {goal:.2f}: {told['verdict']}")
    return f"{protocol.ratio_text(told)} times as fast as {of_what} ({name}; {judged})"


def judgement(state, plain_ratios):
    """How train stands to its best peer, and to the best of those that pad as texts come; and its memory."""
    results = protocol.Results(state)
    peers = [name for name in results.contestants("") if name != state["ours"]]
    if not peers or not results.rates(state["ours"]):
        return ""
    goal = goal_of(state, plain_ratios)
    told = "train is " + stands(results, results.best_mode(None), goal, "the best peer")
    padded = [name for name in peers if detail(results, name, "padding") >= 2]
    if state["settings"]["lengths"] == "unlike":
        best = max(padded, key=lambda name: sum(results.rates(name)) / len(results.rates(name)), default=None)
        told += (", and " + stands(results, best, goal, "the best of those half or more of whose work is padding")
                 if best else "; no peer's work is padding by half or more")
    elif goal is not None:
        told += f"; the goal is the ratio of plain training over its best peer, {goal:.2f}"
    least = min(peers, key=lambda name: detail(results, name, "max_memory_bytes"))
    share = detail(results, "train", "max_memory_bytes") / min(
        sample["max_memory_bytes"] for sample in results.samples(least, "").values())
    return (f"{told}. It takes at most {share:.0%} of the memory of the peer with the least ({least}; goal {MOST_MEMORY:.0%}: "
            f"{'met' if share <= MOST_MEMORY else 'not met'}).")


def differences(record):
    """A line for each contestant whose first step has another loss than train's, or whose rounds hold other tokens."""
    found = []
    for state in record.states:
        results, bound = protocol.Results(state), LOSS_BOUND[state["settings"]["precision"]]
        ours = next(iter(results.samples("train", "").values()), None)
        if ours is None:
            continue
        for name, loss in record.extra.get("first_losses", {}).get(state["name"], {}).items():
            if abs(loss / ours["losses_nats"][0] - 1) > bound:
                found.append(f"{state['name']}: {name} has a loss of {loss:.5f} in the first step, train of "
                             f"{ours['losses_nats'][0]:.5f}: more than {bound:g} apart")
        for name in results.contestants(""):
            tokens = next(iter(results.samples(name, "").values()))["work"]
            if tokens != ours["work"]:
                found.append(f"{state['name']}: a round of {name} has {tokens} tokens, of train {ours['work']}")
    return found


def text(record, plain_ratios):
    lines = ["", "## Goals", ""]
    for state in record.states:
        if told := judgement(state, plain_ratios):
            lines += [f"{state['name']}: {told}", ""]
    lines += ["| | contestant | peak memory MB | computed for a useful token |", "|---|---|---:|---:|"]
    for state in record.states:
        results = protocol.Results(state)
        lines += [f"| {state['name']} | {name} | {detail(results, name, 'max_memory_bytes') / 1e6:.0f} | "
                  f"{detail(results, name, 'padding'):.2f} |" for name in results.contestants("")]
    failures = differences(record)
    lines += ["", "First losses agree, and all rounds hold the same tokens." if not failures else
              "**Not the same work:** " + "; ".join(failures) + "."]
    return "\n".join(lines) + "\n"
