#!/usr/bin/env python3
"""Trains embeddings with PyTorch, as one contestant of grit_speed.py: contrastive steps larger than a micro-batch.

usage: torch_grit_loop.py --init CHECKPOINT --records RECORDS.jsonl --batch B --accum A [--loop LOOP] [--sorted]
                          [--compile MODE [--few-shapes]] [--attention bb|cc] [--precision fp32|bf16] [--threads N]
                          [--query-max-len N] [--passage-max-len N]

Steps take the records one behind the other, B x A each: RECORDS.jsonl holds them in the order of the steps. LOOP is torch:
torch_grit.py's GradCache around transformers' model, padded to the longest text of a micro-batch; or st: sentence-transformers'
CachedMultipleNegativesRankingLoss with micro-batches of B. --sorted puts the texts of a step in the order of their lengths
before it is cut into micro-batches (of torch alone), --compile compiles the layers by a mode of torch.compile, with --few-shapes for each shape of a
micro-batch instead of for all. Nothing is dropped out. Each line of its standard input asks for `steps` steps from the step `first`
on (protocol.py), whatever it has done before. Answers have wall and processor time, tokens and tokens with padding of each step,
the losses, threads and peak memory.
"""
import argparse
import itertools
import resource

import torch
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

import protocol
import torch_grit
from torch_grit import Options, Texts


def compile_layers(layers, mode, few_shapes):
    """One at a time: one compilation serves them all."""
    for layer in layers:
        layer.compile(dynamic=not few_shapes, mode=mode)


class LeanModel(torch_grit.Model):
    """torch_grit.Model with masks as small as a careful user makes them."""

    def __init__(self, language_model, options, mode, few_shapes):
        super().__init__(language_model, options)
        self.run = language_model.base_model
        if mode:
            compile_layers(self.run.layers, mode, few_shapes)

    def hidden(self, ids_bt, tokens_bt, bidirectional):
        # A mask of 4 dimensions is taken as it is; one of 2 becomes a causal one.
        mask = tokens_bt[:, None, None, :] if bidirectional else tokens_bt.long()
        return self.run(input_ids=ids_bt, attention_mask=mask, use_cache=False).last_hidden_state


class TorchLoop:
    def __init__(self, args, options):
        self.args, self.options = args, options
        language_model = LlamaForCausalLM.from_pretrained(args.init, dtype=torch.float32, attn_implementation="sdpa")
        self.model = LeanModel(language_model, options, args.compile, args.few_shapes)
        self.parameters = list(torch_grit.parameters_in_training(self.model).values())
        self.padded_tokens = 0

    def chunks(self, texts, size):
        """(order, chunks): of texts in the order of their lengths, or as they come."""
        lengths = texts.tokens_bt.sum(1)
        order = lengths.argsort(descending=True, stable=True) if self.args.sorted else torch.arange(len(texts))
        ordered = Texts(texts.ids_bt[order], texts.tokens_bt[order], texts.pooled_bt[order])
        chunks = torch_grit.chunks_of(ordered, size)
        self.padded_tokens += sum(chunk.ids_bt.numel() for chunk in chunks)
        return order, chunks

    def embed(self, chunk):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.args.precision == "bf16"):
            return self.model.embed(chunk).float()

    def add_gradients(self, queries, passages):
        sides = [self.chunks(queries, self.args.batch), self.chunks(passages, self.args.batch * self.options.group_size)]
        vectors = []
        with torch.no_grad():
            for order, chunks in sides:
                embedded = torch.cat([self.embed(chunk) for chunk in chunks])
                vectors.append(torch.empty_like(embedded).index_copy_(0, order, embedded))
        for side in vectors:
            side.requires_grad_()
        loss = torch_grit.contrastive_loss(*vectors, self.options)
        loss.backward()
        for (order, chunks), side in zip(sides, vectors):
            for chunk, gradient in zip(chunks, side.grad[order].split([len(chunk) for chunk in chunks])):
                (self.embed(chunk) * gradient).sum().backward()
        return loss.item()

    def step(self, queries, passages):
        return self.add_gradients(queries, passages)


class SentenceTransformersLoop:
    """The library's own loss on the folder as it opens it, from token ids that are made beforehand."""

    def __init__(self, args, options):
        import sentence_transformers
        from sentence_transformers.sentence_transformer import losses

        self.args, self.options = args, options
        self.model = sentence_transformers.SentenceTransformer(args.init, trust_remote_code=True, device="cpu",
                                                               model_kwargs={"dtype": torch.float32})
        self.model.train()
        if args.compile:
            layers = [module for module in self.model.modules() if isinstance(module, LlamaDecoderLayer)]
            assert layers, "sentence-transformers has opened no Llama"
            compile_layers(layers, args.compile, args.few_shapes)
        self.loss = losses.CachedMultipleNegativesRankingLoss(self.model, scale=1 / options.temperature,
                                                              mini_batch_size=args.batch)
        self.parameters = list(self.model.parameters())
        self.padded_tokens = 0

    def features(self, texts):
        """As the library's tokenizer makes them. It pads a micro-batch to its own longest text."""
        own = texts.chunk(0, len(texts))
        self.padded_tokens += sum(chunk.ids_bt.numel() for chunk in torch_grit.chunks_of(own, self.args.batch))
        first_pooled = (own.tokens_bt & ~own.pooled_bt).sum(1)
        assert first_pooled.min() == first_pooled.max(), "texts of one batch have one prompt"
        return {"input_ids": own.ids_bt, "attention_mask": own.tokens_bt.long(), "prompt_length": int(first_pooled[0])}

    def step(self, queries, passages):
        """Anchors, positives and negatives as the library takes them."""
        positives = Texts(*(part[0::2] for part in (passages.ids_bt, passages.tokens_bt, passages.pooled_bt)))
        negatives = Texts(*(part[1::2] for part in (passages.ids_bt, passages.tokens_bt, passages.pooled_bt)))
        features = [self.features(texts) for texts in (queries, positives, negatives)]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.args.precision == "bf16"):
            loss = self.loss(features, labels=None)
            loss.backward()  # in which the library embeds again: outside, that would be in fp32
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--records"):
        parser.add_argument(name, required=True)
    for name in ("--batch", "--accum"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--loop", choices=["torch", "st"], default="torch")
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("--compile")
    parser.add_argument("--few-shapes", action="store_true")
    parser.add_argument("--attention", choices=["bb", "cc"], default="bb")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--query-max-len", type=int, default=32)
    parser.add_argument("--passage-max-len", type=int, default=128)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    options = Options(attention=args.attention, query_max_len=args.query_max_len, passage_max_len=args.passage_max_len)
    records = torch_grit.read_records(args.records)
    loop = (TorchLoop if args.loop == "torch" else SentenceTransformersLoop)(args, options)
    optimizer = torch.optim.AdamW(torch_grit.parameter_groups(loop.parameters, 0.01), lr=1e-4, betas=(0.9, 0.95), fused=True)
    queries = args.batch * args.accum

    def work(first, steps):
        assert len(records) >= (first + steps) * queries, "fewer records than the steps take"
        numbers, tokens, padded_tokens = itertools.count(first), [], []

        def step():
            number = next(numbers)
            batch = torch_grit.Batch.of(records[number * queries:(number + 1) * queries], [], options)
            before = loop.padded_tokens
            loss = loop.step(batch.queries, batch.passages)
            torch.nn.utils.clip_grad_norm_(loop.parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            tokens.append(int(batch.queries.tokens_bt.sum() + batch.passages.tokens_bt.sum()))
            padded_tokens.append(loop.padded_tokens - before)
            return loss

        told = protocol.times_of_steps(step, steps)
        return protocol.whole_of_steps({**told, "tokens": tokens, "padded_tokens": padded_tokens, "threads": torch.get_num_threads(),
                                        "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})

    protocol.serve(work)


if __name__ == "__main__":
    main()
