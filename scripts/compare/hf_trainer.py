#!/usr/bin/env python3
"""Trains with Hugging Face's Trainer what `train` trained, or evaluates what `evaluate` read, as often as it is asked to.

usage: hf_trainer.py --init CHECKPOINT --plan PLAN.json --train CHUNKS.jsonl [--evaluation CHUNKS.jsonl] [--compile MODE]
                     [--threads N]

Same start, tokens, order, schedule and optimiser as the run that the plan comes from. Every sample must be one span of
one document, so that both sides compute the same attention. It is the other end of a Worker (protocol.py). Training goes on
by as many steps as a request asks for ({"steps": 3}), and each answer has the loss, and wall and CPU time, of each. With
--evaluation it does not train: each answer is of an evaluation of the first weights on the whole batches of those chunks, as
many as the request names ({"batches": 2}) or all of them ({}). --compile takes a mode of torch.compile, by the Trainer's own
arguments: compiling is in the first steps and in the first evaluation. Needs torch, transformers, accelerate.
"""
import time

started_unix_s = time.time()

import argparse  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402

imported_unix_s = time.time()

import protocol  # noqa: E402
import sample_order  # noqa: E402
from pytorch_loop import adamw, learning_rate  # noqa: E402

# Of those in the data: after them training begins with the first again.
MOST_STEPS_OF_SAMPLES = 64
# A Trainer knows its last step; here the requests decide.
NO_LAST_STEP = 1_000_000


def max_memory_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Samples(torch.utils.data.Dataset):
    def __init__(self, samples):
        if any(len(sample) != 1 for sample in samples):
            sys.exit("a sample holds more than one span")
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        tokens, following = (torch.tensor(part) for part in self.samples[index][0])
        return {"input_ids": tokens, "labels": following, "shift_labels": following}  # each at its token's place


class Rounds(transformers.TrainerCallback):
    """Lets a Trainer take as many steps as each request asks for. With the last request the process ends."""

    def __init__(self, tokens):
        self.requests, self.tokens, self.first_unix_s = protocol.requests(), tokens, None
        self.answer, self.left, self.told, self.begin = None, 0, {}, None

    def take(self):
        """Waits for a request, from which on its first step is timed."""
        request, self.answer = next(self.requests, (None, None))
        if request is None:
            sys.exit()
        self.left, self.told = request["steps"], {"losses_nats": [], "step_times_s": [], "cpu_times_s": []}
        self.begin = time.monotonic(), time.process_time()

    def on_train_begin(self, args, state, control, **kwargs):
        self.take()

    def on_step_begin(self, args, state, control, **kwargs):
        self.first_unix_s = self.first_unix_s or time.time()

    def on_log(self, args, state, control, logs=None, **kwargs):
        """A step's record is its end: what a Trainer does between two of them is the second's."""
        if "loss" not in logs:
            return
        now = time.monotonic(), time.process_time()
        for name, value in (("losses_nats", logs["loss"]), ("step_times_s", now[0] - self.begin[0]),
                            ("cpu_times_s", now[1] - self.begin[1])):
            self.told[name].append(value)
        self.begin, self.left = now, self.left - 1
        if self.left == 0:
            self.answer(protocol.whole_of_steps({
                **self.told, "tokens": self.tokens, "import_s": imported_unix_s - started_unix_s,
                "imported_unix_s": imported_unix_s, "first_micro_batch_unix_s": self.first_unix_s,
                "max_memory_bytes": max_memory_bytes()}))
            self.take()


def train(options, plan, model, arguments):
    length = plan["sequence_tokens"]
    stream = sample_order.training_samples(sample_order.read_chunks(options.train), length, plan["seed"], plan["window_chunks"])
    whole = (sample for sample in stream if len(sample[0][0]) == length)
    step_samples = plan["batch"] * plan["accum"]
    samples = Samples(list(itertools.islice(whole, MOST_STEPS_OF_SAMPLES * step_samples)))
    optimizer = adamw(model, plan, lr=1.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(plan, step))
    transformers.Trainer(model=model, args=arguments, train_dataset=samples, optimizers=(optimizer, schedule),
                         callbacks=[Rounds(step_samples * length)]).train()


def evaluate(options, plan, model, arguments):
    batch, length = plan["batch"], plan["sequence_tokens"]
    held = [sample for sample in sample_order.stored_samples(sample_order.read_chunks(options.evaluation), length)
            if len(sample[0][0]) == length]
    held = held[:len(held) // batch * batch]  # of another shape the last batch would be compiled in a round
    if not held:
        sys.exit(f"{options.evaluation} has no batch of {batch} samples of {length} tokens")
    trainer = transformers.Trainer(model=model, args=arguments)

    def work(batches=None):
        chosen = Samples(held if batches is None else held[:batches * batch])
        told, took = protocol.timed(lambda: trainer.evaluate(chosen))
        # Evaluating again, a Trainer would take the model as it was before it compiled it.
        trainer.model = trainer.model_wrapped
        return {"work": len(chosen) * length, **took, "loss_nats": told["eval_loss"], "max_memory_bytes": max_memory_bytes()}

    protocol.serve(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--plan", "--train"):
        parser.add_argument(name, required=True)
    parser.add_argument("--evaluation")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    model = transformers.AutoModelForCausalLM.from_pretrained(options.init, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, max_steps=NO_LAST_STEP, per_device_train_batch_size=plan["batch"],
            gradient_accumulation_steps=plan["accum"], per_device_eval_batch_size=plan["batch"],
            max_grad_norm=plan["clip"], bf16=plan["precision"] == "bf16", use_cpu=True, logging_steps=1,
            save_strategy="no", report_to=[], disable_tqdm=True, train_sampling_strategy="sequential",
            prediction_loss_only=True, remove_unused_columns=False, torch_compile=options.compile is not None,
            torch_compile_mode=options.compile)
        (evaluate if options.evaluation else train)(options, plan, model, arguments)


if __name__ == "__main__":
    main()
