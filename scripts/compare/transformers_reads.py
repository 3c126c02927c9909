#!/usr/bin/env python3
"""Opens a model of ours with Hugging Face transformers and compares what it does with what the tools do.

usage: transformers_reads.py MODEL TALKS.jsonl [--talks 8] [--tokens 16]

MODEL is the folder of a checkpoint or of a merged model that keeps its chat template (chat_template.jinja), TALKS.jsonl has
lines with "question" and "answer". AutoTokenizer's apply_chat_template gives the ids of the first conversations, which must be
those of pretokenize --records sft; AutoModelForCausalLM decodes answers to their questions greedily, in fp32, whose ids must be
those of generate. Prints one JSON object with the versions; exit status 1 where something differs. The tools are those of PATH.
Needs torch, transformers, sentencepiece and protobuf.
"""
import argparse
import json
import subprocess
import sys

MOST_ANSWERS = 4


def ids_of(command, records):
    """The ids of each line that a tool writes of these records."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    out = subprocess.run(command, input=lines, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line)["ids"] for line in out.splitlines()]


def answer_of(model, prompt, tokens, end):
    import torch
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, pad_token_id=0)
    answer = out[0, len(prompt):].tolist()
    return answer[:-1] if answer[-1:] == [end] else answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("talks", help="conversations in JSON lines")
    parser.add_argument("--talks", dest="count", type=int, default=8, help="how many of them are compared")
    parser.add_argument("--tokens", type=int, default=16, help="longest answer that is decoded")
    options = parser.parse_args()
    import torch
    import transformers

    with open(options.talks, encoding="utf-8") as file:
        talks = [json.loads(line) for line in file][:options.count]
    conversations = [[{"role": "user", "content": talk["question"]}, {"role": "assistant", "content": talk["answer"]}]
                     for talk in talks]
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()

    def apply(turns, **more):
        return list(tokenizer.apply_chat_template(turns, tokenize=True, return_dict=True, **more)["input_ids"])

    ours = ids_of(["pretokenize", "-q", "--records", "sft", "--tokenizer", options.model, "--to", "jsonl"],
                  [{"messages": turns} for turns in conversations])
    same_ids = sum(one == apply(turns) for one, turns in zip(ours, conversations, strict=True))

    prompts = [(turns[:1], apply(turns[:1], add_generation_prompt=True)) for turns in conversations]
    room = model.config.max_position_embeddings - options.tokens
    prompts = [(turns, ids) for turns, ids in prompts if len(ids) <= room][:MOST_ANSWERS]
    ours = ids_of(["generate", "-q", "--checkpoint", options.model, "--template", options.model, "--format", "jsonl",
                   "--max-tokens", str(options.tokens), "--mixed-precision", "no"], [{"messages": turns} for turns, _ in prompts])
    same_answers = sum(one == answer_of(model, ids, options.tokens, tokenizer.eos_token_id)
                       for one, (_, ids) in zip(ours, prompts, strict=True))
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__,
                      "tokenizer": type(tokenizer).__name__, "model": type(model).__name__,
                      "conversations": len(conversations), "same_ids": same_ids,
                      "answers": len(prompts), "same_answers": same_answers}))
    return 0 if prompts and (same_ids, same_answers) == (len(conversations), len(prompts)) else 1


if __name__ == "__main__":
    sys.exit(main())
