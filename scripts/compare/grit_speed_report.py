"""What the runs that grit_speed.py measured say, as Markdown."""
import datetime
import statistics

UNTIMED_STEPS = 2
# Of training, over any peer, where padding is half or more of what is computed; where lengths are equal it is to be as much
# faster as plain training is. Of peak memory, the most.
LEAST_RATIO_UNLIKE = 2.5
MOST_MEMORY = 0.5
# Relative, of the loss of the first step: in bf16 scores of some tens are rounded to an eighth before they are exponents.
LOSS_BOUND = {"fp32": 1e-3, "bf16": 5e-2}
NAMES = {"train": "train", "eager": "PyTorch eager, padded", "compiled": "torch.compile, padded",
         "eager-sorted": "PyTorch eager, sorted by length", "compiled-sorted": "torch.compile, sorted by length",
         "sentence-transformers": "sentence-transformers"}


def speed(run, clock="step_times_s"):
    """Useful tokens a second of the steps that count: of the wall, or with cpu_times_s of processors."""
    return sum(run["tokens"][UNTIMED_STEPS:]) / sum(run[clock][UNTIMED_STEPS:])


def padding(run):
    """Tokens that the run computes for a useful one."""
    return 1.0 if run["contestant"] == "train" else sum(run["padded_tokens"]) / sum(run["tokens"])


def line_of(run):
    return (f"{run['contestant']}: {speed(run):.0f} tokens/s, {speed(run, 'cpu_times_s'):.0f} a processor's second, "
            f"{run['max_memory_bytes'] / 1e6:.0f} MB, first loss {run['losses_nats'][0]:.4f}, {run['process_s']:.0f} s in all")


def spread(values, form):
    """Median, with the least and the greatest where there are several."""
    values = list(values)
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} ({format(min(values), form)} to {format(max(values), form)})"


def verdict(goal, worst, meets, form):
    """A goal is met where the worst round reaches it."""
    return f"goal {format(goal, form)}: " + ("met" if meets else f"not met, the worst round has {format(worst, form)}")


class ContestRuns:
    """The runs of one model, kind of lengths and precision: {contestant: {round: run}}."""

    def __init__(self, settings, runs, plain_ratios=None):
        """plain_ratios: by precision, how much faster than a peer plain training of such a model is."""
        self.settings, self.plain_ratios = settings, plain_ratios or {}
        self.of = {name: {run["round"]: run for run in runs if run["contestant"] == name} for name in NAMES}
        self.of = {name: by_round for name, by_round in self.of.items() if by_round}

    def pairs(self, peer):
        """(train's run, the peer's) of each round that has both."""
        ours, theirs = self.of.get("train", {}), self.of[peer]
        return [(ours[number], theirs[number]) for number in sorted(ours.keys() & theirs.keys())]

    def ratios(self, peer, clock="step_times_s"):
        return [speed(own, clock) / speed(other, clock) for own, other in self.pairs(peer)]

    def ratio(self, peer):
        return statistics.median(self.ratios(peer))

    def memory_shares(self, peer):
        return [own["max_memory_bytes"] / other["max_memory_bytes"] for own, other in self.pairs(peer)]

    def goal(self):
        """None: nobody has said it."""
        if self.settings["lengths"] == "unlike":
            return LEAST_RATIO_UNLIKE
        return self.plain_ratios.get(self.settings["precision"])

    def peers(self):
        return [name for name in self.of if name != "train" and self.pairs(name)]

    def first_loss(self, name):
        return next(iter(self.of[name].values()))["losses_nats"][0]

    def tokens(self, name):
        return next(iter(self.of[name].values()))["tokens"]

    def differences(self):
        """A line for each contestant whose steps hold other tokens, or whose first step has another loss, than the first's."""
        reference, bound = next(iter(self.of)), LOSS_BOUND[self.settings["precision"]]
        expected, tokens = self.first_loss(reference), self.tokens(reference)
        others = [f"{self.title()}: steps of {name} have {self.tokens(name)} tokens, those of {reference} {tokens}"
                  for name in self.of if self.tokens(name) != tokens]
        return others + [f"{self.title()}: {name} has a loss of {self.first_loss(name):.5f} in the first step, {reference} of "
                         f"{expected:.5f}: more than {bound:g} apart"
                         for name in self.of if abs(self.first_loss(name) / expected - 1) > bound]

    def title(self):
        return "{model}, {lengths} lengths, {precision}".format(**self.settings)

    def row(self, name):
        runs = list(self.of[name].values())
        loads = [load for run in runs for load in run["load"]]
        pairs = [] if name == "train" else self.pairs(name)
        compared = (["1", "1", "1"] if name == "train" else ["", "", ""] if not pairs else
                    [spread(self.ratios(name), ".2f"), spread(self.ratios(name, "cpu_times_s"), ".2f"),
                     f"{statistics.median(self.memory_shares(name)):.0%}"])
        return [NAMES[name], spread(map(speed, runs), ".0f"), spread((speed(run, "cpu_times_s") for run in runs), ".0f"),
                compared[0], compared[1], f"{padding(runs[0]):.2f}",
                spread((run["max_memory_bytes"] / 1e6 for run in runs), ".0f"), compared[2],
                f"{len(runs)}", f"{min(loads):.1f} to {max(loads):.1f}"]

    def judgement(self):
        """How train stands to its best peer, and to the best of those that pad as texts come."""
        peers = self.peers()
        if not peers:
            return []
        goal = self.goal()
        shares = max(map(self.memory_shares, peers), key=statistics.median)

        def stands(name, of_what):
            ratios = self.ratios(name)
            judged = ("no goal without plain training's ratio: --plain-ratio" if goal is None else
                      verdict(goal, min(ratios), min(ratios) >= goal, ".2f"))
            return (f"{spread(ratios, '.2f')} times as fast as {of_what} ({NAMES[name]}; by processors' time "
                    f"{spread(self.ratios(name, 'cpu_times_s'), '.2f')}; {judged})")

        told = "train is " + stands(min(peers, key=self.ratio), "the best peer")
        half_padding = [name for name in peers if padding(next(iter(self.of[name].values()))) >= 2]
        if self.settings["lengths"] == "unlike":
            told += (", and " + stands(min(half_padding, key=self.ratio), "the best of those half or more of whose work is padding")
                     if half_padding else "; no peer's work is padding by half or more")
        if goal is not None and self.settings["lengths"] == "equal":
            told += f"; the goal is the ratio of plain training over its best peer, {goal:.2f}"
        return [f"\n{told}. It takes {spread(shares, '.0%')} of the memory of the peer with the least "
                f"({verdict(MOST_MEMORY, max(shares), max(shares) <= MOST_MEMORY, '.0%')})."]

    def loss_line(self):
        bound = LOSS_BOUND[self.settings["precision"]]
        failures = self.differences()
        return ("\nLoss of the first step: " + ", ".join(f"{name} {self.first_loss(name):.5f}" for name in self.of) +
                (f"; all within {bound:g} of train's, and all steps hold the same tokens." if not failures else
                 ". **Not the same work:** " + "; ".join(failures) + "."))

    def section(self):
        settings = self.settings
        head = ["contestant", "useful tokens/s", "tokens a processor's second", "train is faster", "by processors' time",
                "computed for a useful token", "peak memory MB", "train takes of it", "rounds", "load 1 min"]
        lines = [f"\n## {self.title()}\n",
                 f"{settings['accum']} micro-batches of {settings['batch']} queries a step, attention {settings['attention']}, "
                 f"{settings['steps']} steps of which {UNTIMED_STEPS} are not timed, {settings['threads']} threads.\n",
                 "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        lines += ["| " + " | ".join(self.row(name)) + " |" for name in self.of]
        return "\n".join(lines + self.judgement() + [self.loss_line()])


def contests_of(runs, plain_ratios=None):
    settings = []
    for run in runs:
        if run["settings"] not in settings:
            settings.append(run["settings"])
    return [ContestRuns(own, [run for run in runs if run["settings"] == own], plain_ratios) for own in settings]


def report(runs, plain_ratios=None):
    machines = sorted({run["processor"] for run in runs})
    versions = sorted({", ".join(run["versions"]) for run in runs})
    days = sorted({datetime.datetime.fromisoformat(run["started"]).date().isoformat() for run in runs})
    return "\n".join([
        f"# Training embeddings beside PyTorch and sentence-transformers, {' and '.join(days)}\n",
        f"scripts/compare/grit_speed.sh: {'; '.join(machines)}; {'; '.join(versions)}. Contestants take turns, in the other "
        "order every other round. A query has a positive and a negative passage. All take the same records in the same steps, "
        "from the same first weights, without dropout. Useful tokens are those of texts, padding is none. Medians of rounds, with "
        "the least and the greatest; ratios are those of runs of one round, and a goal is met where the worst round "
        "reaches it. Compilation falls into the steps that are not "
        "timed."] + [contest.section() for contest in contests_of(runs, plain_ratios)]) + "\n"
