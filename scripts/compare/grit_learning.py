"""A part of grit_learning.sh, the toy set or the made-up texts, as a section of its report."""
import argparse
import json
import pathlib
import random

import train_runs
from grit_data import pack_records, write_records
from train_runs import run

# llama-1m with another vocabulary and room for the longest text of the toy set.
TOY_MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 32000,
             "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
             "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TRAINING, HELD_OUT = 4096, 256
MOST_LOSS_BY_HEART = 0.1  # of the generative loss, in nats a token


def train(out, *options):
    run("train", "-q", "--objective", "grit", "--model", "llama-1m", "--seed", 1, "--save-every", 0, "--log-every", 1,
        *options, "--out", out)
    return train_runs.records_of(out, "step")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def toy(scratch, data, epochs):
    """Lines of the report: losses and how often the positive is the nearest of the step, at first and at last."""
    embedding = lines_of(data / "records/toy_data_instruct_toy_data_embedding.jsonl")
    generative = lines_of(data / "records/toy_data_instruct_toy_data_generative.jsonl")
    count = len(embedding)
    model, tokenizer = scratch / "toy.json", data / "tokenizers/mistral-v1.model"
    model.write_text(json.dumps(TOY_MODEL))
    steps = train(scratch / "toy", "--model", model, "--mode", "unified", "--data",
                  pack_records(scratch, "toy-embedding", embedding, tokenizer=tokenizer), "--data",
                  pack_records(scratch, "toy-generative", generative, "sft", tokenizer=tokenizer),
                  "--batch", count, "--accum", 1, "--epochs", epochs, "--lr", "3e-3", "--weight-decay", 0,
                  "--query-max-len", 128, "--passage-max-len", 256, "--generative-max-len", 1024)
    lines = [f"\n## Toy set: {count} records, {len(steps)} steps of all of them\n",
             "| step | contrastive loss | generative loss | positive is nearest |", "|---|---|---|---|"]
    for step in (steps[0], steps[len(steps) // 4], steps[-1]):
        terms = step["loss_terms"]
        lines.append(f"| {step['step']} | {terms['loss_emb_nats']:.4f} | {terms['loss_gen_nats']:.4f} | "
                     f"{terms['in_batch_top1']:.2f} |")
    last = steps[-1]["loss_terms"]
    learnt = last["in_batch_top1"] == 1 and last["loss_gen_nats"] <= MOST_LOSS_BY_HEART
    lines.append(f"\nLearnt by heart (every positive is the nearest, generative loss at most {MOST_LOSS_BY_HEART}): "
                 f"{'yes' if learnt else 'no'}.")
    return lines


class MadeUp:
    """Texts in which a word of six letters says what they are about."""

    def __init__(self):
        self.rng = random.Random(7)
        self.filler = [self.word(3) for _ in range(200)]

    def word(self, letters):
        return "".join(self.rng.choice(LETTERS) for _ in range(letters))

    def text(self, key):
        words = [self.rng.choice(self.filler) for _ in range(self.rng.randint(2, 9))]
        words.insert(self.rng.randint(0, len(words)), key)
        return " ".join(words)

    def pairs(self, count):
        for _ in range(count):
            key = self.word(6)
            yield self.text(key), self.text(key)


def made_up(scratch, steps):
    texts = MadeUp()
    records = [{"query": query, "pos": [passage], "neg": []} for query, passage in texts.pairs(TRAINING)]
    held_out = list(texts.pairs(HELD_OUT))
    write_records(scratch / "corpus.jsonl",
                  ({"_id": f"d{i}", "text": passage} for i, (_, passage) in enumerate(held_out)))
    write_records(scratch / "queries.jsonl", ({"_id": f"q{i}", "text": query} for i, (query, _) in enumerate(held_out)))
    (scratch / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{i}\t1\n" for i in range(HELD_OUT)))
    data = pack_records(scratch, "made-up", records)
    common = ["--mode", "embedding", "--data", data, "--group-size", 1, "--temperature", "0.05", "--query-max-len", 64,
              "--passage-max-len", 64]
    train(scratch / "untrained", *common, "--batch", 2, "--steps", 1, "--lr", 0, "--weight-decay", 0)
    trained = train(scratch / "trained", *common, "--batch", 128, "--accum", 1, "--steps", steps, "--lr", "2e-3")

    def measured(name, *options):
        return json.loads(run("evaluate", "-q", "--metric", "retrieval", "--checkpoint", scratch / name, "--corpus",
                              scratch / "corpus.jsonl", "--queries", scratch / "queries.jsonl", "--qrels",
                              scratch / "qrels.tsv", *options))

    untrained = measured("untrained", "--baseline", "bm25")
    rows = [("untrained", untrained), ("BM25", untrained["baselines"]["bm25"]), ("trained", measured("trained"))]
    lines = [f"\n## Made-up texts: {TRAINING} pairs, {steps} steps of 128; {HELD_OUT} other queries among {HELD_OUT} texts\n",
             "| model | nDCG@10 | 95 % interval | Recall@10 |", "|---|---|---|---|"]
    for name, result in rows:
        low, high = result["ndcg_at_10_interval"]
        lines.append(f"| {name} | {result['ndcg_at_10']:.3f} | {low:.3f} to {high:.3f} | {result['recall_at_10']:.3f} |")
    reached = rows[-1][1]["ndcg_at_10"]
    lines.append(f"\nLoss {trained[0]['loss_nats']:.3f} at first, {trained[-1]['loss_nats']:.3f} at last. nDCG@10 above 0.9: "
                 f"{'yes' if reached > 0.9 else 'no'}.")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["toy", "synthetic"])
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--epochs", type=int)
    args = parser.parse_args()
    lines = toy(args.scratch, args.data, args.epochs) if args.part == "toy" else made_up(args.scratch, args.steps)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
