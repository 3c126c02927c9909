"""GRIT in plain PyTorch, written from its formulas: what train --objective grit is compared with.

A model of transformers with a mask for each pass, autograd, and a GradCache of its own; nothing of Trainwright's C++.
Tokens are those of the bytes tokenizer under the template grit, so that no tokenizer stands between the two sides:

  embedding text     BOS "<|user|>\\n" instruction "\\n<|embed|>\\n" text, or BOS "<|embed|>\\n" text
  generative text    BOS "<|user|>\\n" user "\\n<|assistant|>\\n" answer EOS "\\n" "<|user|>\\n" ...

B texts, T tokens of the longest, D hidden size, d elements of a vector, Q queries, P = G Q passages.
"""
import dataclasses
import json
import math

import torch
from torch.nn import functional as F

BOS, EOS = 256, 257
IGNORE = -100
FILLER = 0  # a token of every vocabulary, where nothing is read


@dataclasses.dataclass(frozen=True)
class Options:
    mode: str = "embedding"
    pooling: str = "mean"
    attention: str = "bbcc"
    temperature: float = 0.02
    group_size: int = 2
    query_max_len: int = 32
    passage_max_len: int = 128
    generative_max_len: int = 128
    gen_loss: str = "mixed"
    gen_loss_factor: float = 1.0
    prefixlm: bool = False
    projection: int = 0
    normalize: bool = True

    @property
    def bidirectional(self):
        return self.attention.startswith("b")

    @property
    def embeds(self):
        return self.mode in ("embedding", "unified")

    @property
    def generates(self):
        return self.mode in ("generative", "unified")

    def flags(self):
        """As train takes them."""
        given = {"mode": self.mode, "pooling": self.pooling, "attn": self.attention, "temperature": self.temperature,
                 "group-size": self.group_size, "query-max-len": self.query_max_len,
                 "passage-max-len": self.passage_max_len, "generative-max-len": self.generative_max_len,
                 "gen-loss": self.gen_loss, "gen-loss-factor": self.gen_loss_factor, "projection": self.projection}
        flags = [part for name, value in given.items() for part in (f"--{name}", str(value))]
        return flags + (["--prefixlm", "on"] if self.prefixlm else [])


# --- Texts as tokens ---------------------------------------------------------------------------------------------------


def ids_of(text):
    return list(text.encode())


def embedding_text(text, limit):
    """(ids, first pooled place): `text` is a string, or [instruction, string]."""
    instruction, body = text if isinstance(text, (list, tuple)) else ("", text)
    instruction = instruction.strip("\t\n :")
    prefix = [BOS] + ids_of(f"<|user|>\n{instruction}\n<|embed|>\n" if instruction else "<|embed|>\n")
    assert len(prefix) < limit, "the instruction fills the limit"
    return (prefix + ids_of(body))[:limit], len(prefix)


def generative_text(turns, limit):
    """(ids, whether each is predicted): `turns` is [user, assistant, ...] or a string, all of which is predicted."""
    if isinstance(turns, str):
        ids = [BOS] + ids_of(turns) + [EOS]
        return ids[:limit], ([False] + [True] * (len(ids) - 1))[:limit]
    ids, predicted = [BOS], [False]

    def add(new, is_predicted):
        ids.extend(new)
        predicted.extend([is_predicted] * len(new))

    for number in range(0, len(turns), 2):
        add(ids_of(("\n" if number else "") + f"<|user|>\n{turns[number]}\n<|assistant|>\n"), False)
        add(ids_of(turns[number + 1].strip()) + [EOS], True)
    return ids[:limit], predicted[:limit]


def last_run_alone(predicted):
    """Of what is predicted, the last run of tokens side by side: prefixlm."""
    kept = [False] * len(predicted)
    end = max(place for place, is_predicted in enumerate(predicted) if is_predicted)
    while end >= 0 and predicted[end]:
        kept[end] = True
        end -= 1
    return kept


def padded(rows, filler):
    width = max(len(row) for row in rows)
    return torch.tensor([list(row) + [filler] * (width - len(row)) for row in rows])


@dataclasses.dataclass
class Texts:
    """Embedding texts, padded on the right."""
    ids_bt: torch.Tensor
    tokens_bt: torch.Tensor  # bool: not padding
    pooled_bt: torch.Tensor  # bool

    @classmethod
    def of(cls, encoded):
        """encoded: (ids, first pooled place) of each."""
        ids_bt = padded([ids for ids, _ in encoded], FILLER)
        places = torch.arange(ids_bt.shape[1])
        lengths = torch.tensor([len(ids) for ids, _ in encoded])
        first = torch.tensor([begin for _, begin in encoded])
        tokens_bt = places < lengths[:, None]
        return cls(ids_bt, tokens_bt, tokens_bt & (places >= first[:, None]))

    def chunk(self, begin, end):
        width = int(self.tokens_bt[begin:end].sum(1).max())
        return Texts(*(part[begin:end, :width] for part in (self.ids_bt, self.tokens_bt, self.pooled_bt)))

    def __len__(self):
        return len(self.ids_bt)


# --- The model ---------------------------------------------------------------------------------------------------------


def whole_mask(tokens_bt, bidirectional, dtype):
    """What is added to the scores [B, 1, T, T]."""
    width = tokens_bt.shape[1]
    seen = tokens_bt[:, None, None, :].expand(-1, 1, width, width)
    if not bidirectional:
        seen = seen & torch.ones(width, width, dtype=torch.bool).tril()
    seen = seen | torch.eye(width, dtype=torch.bool)  # padding sees itself, so that no row is empty
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)


class Model(torch.nn.Module):
    """A causal language model of transformers, and the projection of its vectors."""

    def __init__(self, language_model, options):
        super().__init__()
        self.language_model, self.options = language_model, options
        self.projection = None
        if options.projection:
            self.projection = torch.nn.Linear(language_model.config.hidden_size, options.projection)

    def hidden(self, ids_bt, tokens_bt, bidirectional):
        body = self.language_model.base_model
        mask = whole_mask(tokens_bt, bidirectional, next(body.parameters()).dtype)
        return body(input_ids=ids_bt, attention_mask=mask, use_cache=False).last_hidden_state

    def embed(self, texts):
        """[B, d]"""
        hidden_btd = self.hidden(texts.ids_bt, texts.tokens_bt, self.options.bidirectional)
        if self.projection is not None:
            hidden_btd = self.projection(hidden_btd)
        vectors = pool(self.options.pooling, hidden_btd, texts.tokens_bt, texts.pooled_bt)
        return F.normalize(vectors, dim=1) if self.options.normalize else vectors

    def generative_loss(self, rows, labels_of_all, rows_of_all):
        """The part of some rows in the loss of all rows of the step."""
        options = self.options
        ids_bt = padded([ids for ids, _ in rows], FILLER)
        predicted = [last_run_alone(flags) if options.prefixlm else flags for _, flags in rows]
        labels_bt = padded([[token if flag else IGNORE for token, flag in zip(ids, flags)]
                            for (ids, _), flags in zip(rows, predicted)], IGNORE)
        tokens_bt = padded([[1] * len(ids) for ids, _ in rows], 0).bool()
        hidden_btd = self.hidden(ids_bt, tokens_bt, bidirectional=False)
        logits = self.language_model.lm_head(hidden_btd[:, :-1])
        losses_bt = F.cross_entropy(logits.flatten(0, 1), labels_bt[:, 1:].flatten(), ignore_index=IGNORE,
                                    reduction="none").view(len(rows), -1)
        if options.gen_loss == "mixed":
            loss = losses_bt.sum() / labels_of_all
        elif options.gen_loss == "token":
            loss = losses_bt.sum() / rows_of_all
        else:
            loss = (losses_bt.sum(1) / (labels_bt[:, 1:] != IGNORE).sum(1)).sum() / rows_of_all
        return loss * options.gen_loss_factor


def pool(kind, hidden_btd, tokens_bt, pooled_bt):
    if kind == "cls":
        return hidden_btd[:, 0]
    if kind == "lasttoken":
        return hidden_btd[torch.arange(len(hidden_btd)), tokens_bt.sum(1) - 1]
    weights_bt = pooled_bt.to(hidden_btd.dtype)
    if kind == "weightedmean":
        weights_bt = weights_bt * weights_bt.cumsum(1)
    return (hidden_btd * weights_bt[:, :, None]).sum(1) / weights_bt.sum(1, keepdim=True)


def contrastive_loss(queries_qd, passages_pd, options):
    scores_qp = queries_qd @ passages_pd.t() / options.temperature
    targets = torch.arange(len(queries_qd)) * options.group_size
    return F.cross_entropy(scores_qp, targets)


# --- A step ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Batch:
    """What one step is about: the records of all micro-batches."""
    queries: Texts = None
    passages: Texts = None
    rows: list = None  # of generative_text

    @classmethod
    def of(cls, contrastive, generative, options):
        """
        contrastive: records of {"query", "pos": [one], "neg": [group_size - 1]}
        generative: records of {"text"}
        """
        batch = cls()
        if options.embeds:
            texts = [text for record in contrastive for text in record["pos"][:1] + record["neg"][:options.group_size - 1]]
            batch.queries = Texts.of([embedding_text(record["query"], options.query_max_len) for record in contrastive])
            batch.passages = Texts.of([embedding_text(text, options.passage_max_len) for text in texts])
        if options.generates:
            batch.rows = [generative_text(record["text"], options.generative_max_len) for record in generative]
        return batch

    def labels(self, prefixlm):
        return sum(sum(last_run_alone(flags)[1:] if prefixlm else flags[1:]) for _, flags in self.rows)


def chunks_of(texts, size):
    return [texts.chunk(begin, min(begin + size, len(texts))) for begin in range(0, len(texts), size)]


def add_direct_gradients(model, batch):
    """One graph of all texts. Returns the losses, a number each."""
    loss = contrastive_loss(model.embed(batch.queries), model.embed(batch.passages), model.options)
    loss.backward()
    return loss.item()


def add_cached_gradients(model, batch, chunk):
    """GradCache: vectors of all chunks without a graph, the loss's gradient of each vector, chunks again with a graph."""
    chunks = [chunks_of(batch.queries, chunk), chunks_of(batch.passages, chunk * model.options.group_size)]
    with torch.no_grad():
        vectors = [torch.cat([model.embed(texts) for texts in side]) for side in chunks]
    for side in vectors:
        side.requires_grad_()
    loss = contrastive_loss(*vectors, model.options)
    loss.backward()
    for side, own in zip(chunks, vectors):
        for texts, gradient in zip(side, own.grad.split([len(texts) for texts in side])):
            (model.embed(texts) * gradient).sum().backward()
    return loss.item()


def add_generative_gradients(model, batch, chunk):
    labels, total = batch.labels(model.options.prefixlm), 0.0
    for begin in range(0, len(batch.rows), chunk):
        loss = model.generative_loss(batch.rows[begin:begin + chunk], labels, len(batch.rows))
        loss.backward()
        total += loss.item()
    return total


def add_gradients(model, batch, chunk=None):
    """Adds the step's gradients. chunk: queries of a micro-batch; None: no GradCache. Returns the step's loss terms."""
    terms = {}
    if model.options.embeds:
        terms["loss_emb_nats"] = (add_direct_gradients(model, batch) if chunk is None
                                  else add_cached_gradients(model, batch, chunk))
    if model.options.generates:
        terms["loss_gen_nats"] = add_generative_gradients(model, batch, chunk or len(batch.rows))
    return terms


def parameters_in_training(model):
    """A head of its own that no loss reads is not trained: it has no gradient, and does not decay."""
    tied = model.language_model.config.tie_word_embeddings
    head = model.language_model.lm_head.weight
    return {name: parameter for name, parameter in model.named_parameters()
            if model.options.generates or tied or parameter is not head}


def clip_by_norm_in_double(parameters, clip):
    """Returns the norm; torch's own sums squares in fp32."""
    gradients = [parameter.grad for parameter in parameters]
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    if clip > 0:
        torch._foreach_mul_(gradients, min(1.0, clip / (norm + 1e-6)))
    return norm


def parameter_groups(parameters, weight_decay):
    """Of an optimizer: vectors do not decay."""
    return [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]


def train(model, batch_of_step, steps, *, lr, weight_decay, betas, epsilon, clip, chunk):
    """AdamW with a constant learning rate. batch_of_step(step) -> Batch. Yields each step's terms."""
    own = parameters_in_training(model)
    optimizer = torch.optim.AdamW(parameter_groups(own.values(), weight_decay), lr=lr, betas=betas, eps=epsilon)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        terms = add_gradients(model, batch_of_step(step), chunk)
        terms["grad_norm"] = clip_by_norm_in_double(list(own.values()), clip)
        optimizer.step()
        yield terms


def read_records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
