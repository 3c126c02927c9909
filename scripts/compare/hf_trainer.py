#!/usr/bin/env python3
"""Trains and evaluates a model with Hugging Face's Trainer on what `train` trained on, and what `evaluate` read.

usage: hf_trainer.py --init CHECKPOINT --plan PLAN.json --train CHUNKS.jsonl --evaluation CHUNKS.jsonl --steps N
                     [--compile MODE] [--threads N]

Same start, tokens, order, schedule and optimiser as the run that the plan comes from. Every sample must be one span of
one document, so that both sides compute the same attention. Before it, evaluates the same weights on the chunks of
--evaluation. --compile takes a mode of torch.compile, by the Trainer's own arguments: compiling is in the first evaluation and in
the first steps. Prints one JSON object: the loss, and wall and CPU time, of each step, the evaluation's loss and
times. Needs torch, transformers, accelerate.
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


class Clock(transformers.TrainerCallback):
    def __init__(self):
        self.begin, self.first_unix_s, self.step_times_s, self.cpu_times_s, self.losses_nats = None, None, [], [], []

    def on_step_begin(self, args, state, control, **kwargs):
        self.first_unix_s = self.first_unix_s or time.time()
        self.begin = self.begin or (time.monotonic(), time.process_time())

    def on_step_end(self, args, state, control, **kwargs):
        now = time.monotonic(), time.process_time()
        self.step_times_s.append(now[0] - self.begin[0])
        self.cpu_times_s.append(now[1] - self.begin[1])
        self.begin = now

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses_nats.append(logs["loss"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--plan", "--train", "--evaluation"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    chunks, length = sample_order.read_chunks(options.train), plan["sequence_tokens"]
    stream = sample_order.training_samples(chunks, length, plan["seed"], plan["window_chunks"])
    wanted = options.steps * plan["batch"] * plan["accum"]
    whole = (sample for sample in stream if len(sample[0][0]) == length)
    training = Samples(list(itertools.islice(whole, wanted)))
    held = Samples([sample for sample in sample_order.stored_samples(sample_order.read_chunks(options.evaluation), length)
                    if len(sample[0][0]) == length])
    model = transformers.AutoModelForCausalLM.from_pretrained(options.init, dtype=torch.float32)
    optimizer = adamw(model, plan, lr=1.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(plan, step))
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, max_steps=options.steps, per_device_train_batch_size=plan["batch"],
            gradient_accumulation_steps=plan["accum"], per_device_eval_batch_size=plan["batch"],
            max_grad_norm=plan["clip"], bf16=plan["precision"] == "bf16", use_cpu=True, logging_steps=1,
            save_strategy="no", report_to=[], disable_tqdm=True, train_sampling_strategy="sequential",
            prediction_loss_only=True, remove_unused_columns=False, torch_compile=options.compile is not None,
            torch_compile_mode=options.compile)
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=training,
                                       optimizers=(optimizer, schedule), callbacks=[clock])
        before = trainer.evaluate(held)
        _, evaluation = protocol.timed(lambda: trainer.evaluate(held))
        trainer.train()
    print(json.dumps({
        "losses_nats": clock.losses_nats, "step_times_s": clock.step_times_s, "cpu_times_s": clock.cpu_times_s,
        "tokens": plan["batch"] * plan["accum"] * length,
        "imported_unix_s": imported_unix_s, "first_micro_batch_unix_s": clock.first_unix_s,
        "evaluation_loss_nats": before["eval_loss"], "evaluation": evaluation,
        "evaluation_tokens": len(held) * length,
        "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
