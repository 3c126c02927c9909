#!/usr/bin/env python3
"""Makes tests/tok/testdata/text_tokenizers: small tokenizer.json files of every family without byte-level BPE that the
suite reads, and what Hugging Face tokenizers makes of documents with them.

usage: make_text_tokenizer_fixtures.py [--goldens] [OUTPUT_DIR]
       (needs the Python packages tokenizers 0.23.3, sentencepiece 0.2.3, protobuf)

As make_tokenizer_json_fixtures.py: <family>.json is the tokenizer; goldens.json holds its ids and decoded text for
written-out documents, and hashes of its ids for the random documents of tokenizer_json_documents.py. --goldens keeps
the tokenizers that are there.
"""
import io
import json
import pathlib
import sys
import tempfile

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_json_documents as documents  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS, DOCUMENTS_PER_HASH = 8000, 500
MARK = "\u2581"
PLAY = (HERE.parent.parent / "examples/data/tinyshakespeare.txt").read_text()
WRITTEN = documents.WRITTEN + [
    MARK, MARK + "a", "a" + MARK + "b" + MARK + MARK + "c", " " + MARK + "x", "a" + MARK + " b", "<s>a</s> b", "a<s> b",
    "</s><s>", "<pad>x<unk>y", "  <mask>  the", "the [MASK] of", "``quoted'' --", "\ufb01ne \uff21\uff22\uff23 \u2122 \u00bd", "\x01abc", "\x01 abc",
    "e\u0301e\u0301 \uff45\u0301", "a\u00adb", "\u00a8x", "\r\na\r\nb", "\u0600a \u06dd1", "don't do not can't", "\u4e2d\u6587\u5b57\u7b26 mixed \u4e2dtext",
    "\u00c9COLE \u0130stanbul \u1e9e\u00df", "word " * 300, "antidisestablishmentarianism" * 5, "\u212b\ufdfa\ufb03", "<0x41><0x0A>", "\n\nx\n\n\ny",
    "the  the   the", "\u3000the\u3000", " \u00a0 the", "zzqx\u20ac\u20ac\u20ac zz", "<start_of_turn>user\nhi<end_of_turn>", "x<|user|> \n y",
]


def special(text, **properties):
    return AddedToken(text, special=True, normalized=False, **properties)


def character_map(rules):
    """The map of a SentencePiece model with rules from text to text."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for text, to in sorted(rules.items()):
            file.write(" ".join(f"{ord(c):X}" for c in text) + "\t" + " ".join(f"{ord(c):X}" for c in to) + "\n")
        file.flush()
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(PLAY[:100000].split("\n")), model_writer=model, vocab_size=100, minloglevel=2,
            normalization_rule_tsv=file.name, hard_vocab_limit=False)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def nmt_nfkc():
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString((HERE / "testdata/unigram-1k.model").read_bytes())
    return normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def own_map():
    return character_map({"e\u0301": "\u00e9", "\ufb01": "fi", "\u2122": "TM", "\uff45": "e", "\uff21": "A", "\u00ad": "", "\x01": "", "\t": " ",
                          "\n": " ", "\r": " ", "\u3000": " ", "a\u0323": "\u1ea1", "\u0600": "N", "\u00a8": " \u0308", "ab": "q"})


def bpe_json(lines, size, lead, byte_fallback, split=None, **model):
    """Trains BPE over marked text; `lead` come first in the vocabulary, then bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    if split:
        tokenizer.pre_tokenizer = split
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=["<unk>"]))
    trained = json.loads(tokenizer.to_str())["model"]
    texts = lead + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
    texts += [t for t in sorted(trained["vocab"], key=trained["vocab"].get) if t not in texts and t != "<unk>"]
    return dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None,
                fuse_unk=True, byte_fallback=byte_fallback, ignore_merges=False,
                vocab={t: i for i, t in enumerate(texts)}, merges=trained["merges"]) | model


def lines_of(count=60000, extra=True):
    return PLAY[:count].split("\n") + ([part * 5 for part in documents.TEXTS] if extra else [])


def from_model(model):
    tokenizer = json.loads(Tokenizer(models.BPE()).to_str())
    tokenizer["model"] = model
    return Tokenizer.from_str(json.dumps(tokenizer))


LLAMA_DECODER = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
MARKS = ["<unk>", "<s>", "</s>"]


def begins_with(token, tokenizer):
    return processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token} $B:1",
                                         special_tokens=[(token, tokenizer.token_to_id(token))])


def llama2():
    t = from_model(bpe_json(lines_of(), 900, MARKS, True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    t.decoder = LLAMA_DECODER
    t.add_tokens([special(x) for x in MARKS])
    t.post_processor = begins_with("<s>", t)
    return t


def converted():
    """As transformers' general converter has a BPE model of SentencePiece."""
    t = from_model(bpe_json(lines_of(), 900, MARKS, True))
    t.normalizer = normalizers.Sequence([normalizers.Replace(" ", MARK), normalizers.Replace(Regex(r"\A" + MARK), MARK * 2)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(MARK, "always", split=False)])
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(MARK, "always", split=False)])
    return t


def llama_legacy():
    t = from_model(bpe_json(lines_of(extra=False), 500, MARKS, False))
    t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    t.decoder = LLAMA_DECODER
    t.add_tokens([AddedToken(x, special=True, normalized=True) for x in MARKS] +
                 [AddedToken("word", single_word=True, normalized=True), AddedToken("a b", normalized=True)])
    return t


def llama_first():
    t = from_model(bpe_json(lines_of(), 900, MARKS, True, split=pre_tokenizers.Metaspace()))
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "first", split=False)
    t.decoder = LLAMA_DECODER
    t.add_tokens([special(x) for x in MARKS] + [AddedToken("<mask>", lstrip=True, normalized=False, special=True),
                                                AddedToken("word", normalized=True), AddedToken("<both>", lstrip=True, rstrip=True)])
    return t


def phi3():
    t = llama2()
    t.add_tokens([special(x, rstrip=True) for x in ("<|user|>", "<|end|>", "<|endoftext|>", "</s>")])
    return t


def gemma():
    lead = ["<pad>", "<eos>", "<bos>", "<unk>", "\n", "\n\n", "\n\n\n", MARK * 2, MARK * 3, "<start_of_turn>", "<end_of_turn>"]
    t = from_model(bpe_json([line + "\n" for line in lines_of()], 900, lead, True))
    t.normalizer = normalizers.Replace(" ", MARK)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens([special(x) for x in ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>")] +
                 [AddedToken(x, normalized=False) for x in ("\n\n", "\n\n\n", MARK * 2, MARK * 3)])
    t.post_processor = begins_with("<bos>", t)
    return t


def metaspace():
    t = from_model(bpe_json(lines_of(extra=False), 600, MARKS, False, split=pre_tokenizers.Metaspace(), fuse_unk=False, ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always")
    t.decoder = decoders.Metaspace(MARK, "always")
    t.add_tokens([special(x) for x in MARKS])
    return t


def metaspace_fused():
    t = from_model(bpe_json(lines_of(20000, extra=False), 400, MARKS, False))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "never")
    t.decoder = decoders.Metaspace(MARK, "never")
    t.add_tokens([special(x) for x in MARKS])
    return t


def unmarked():
    """No family: spaces are spaces, each unknown character is one, nothing decodes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.train_from_iterator(lines_of(20000, extra=False), trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"]))
    tokenizer.add_tokens([AddedToken("\u00c9T\u00c9", normalized=True), AddedToken("<Mask>", lstrip=True, rstrip=True, normalized=True)])
    return tokenizer


def unigram(size, specials, normalizer=None, split=None, byte_fallback=False, extra=True):
    t = Tokenizer(models.Unigram())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = split or pre_tokenizers.Metaspace()
    t.train_from_iterator(lines_of(extra=extra), trainers.UnigramTrainer(
        vocab_size=size, show_progress=False, special_tokens=specials, unk_token="<unk>"))
    out = json.loads(t.to_str())
    out["added_tokens"] = []
    if byte_fallback:
        out["model"]["byte_fallback"] = True
        out["model"]["vocab"] += [[f"<0x{b:02X}>", 0.0] for b in range(256)]
    return Tokenizer.from_str(json.dumps(out))


def t5():
    t = unigram(600, ["<pad>", "</s>", "<unk>"], extra=False)
    t.normalizer = normalizers.Sequence([nmt_nfkc(), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), MARK)])
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always")
    t.decoder = decoders.Metaspace(MARK, "always")
    t.add_tokens([special(x) for x in ("<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>")])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def xlmr():
    t = unigram(700, ["<s>", "<pad>", "</s>", "<unk>"])
    t.normalizer = own_map()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")])
    t.decoder = decoders.Metaspace(MARK, "always")
    t.add_tokens([special(x) for x in ("<s>", "<pad>", "</s>", "<unk>")] + [AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def albert():
    t = unigram(500, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], extra=False)
    t.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                                         normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")])
    t.decoder = decoders.Metaspace(MARK, "always")
    t.add_tokens([special(x) for x in ("<pad>", "<unk>", "[CLS]", "[SEP]")] + [AddedToken("[MASK]", lstrip=True, normalized=False, special=True),
                                                                             AddedToken("\u00c9T\u00c9", normalized=True)])
    return t


def unigram_bytes():
    t = unigram(500, ["<unk>", "<s>", "</s>"], byte_fallback=True, extra=False)
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.Strip(left=True, right=False), normalizers.NFKC(), own_map(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "first", split=False)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(MARK, "first")])
    t.add_tokens([special(x) for x in ("<unk>", "<s>", "</s>")])
    return t


def unigram_plain():
    """No family: the whole text is one piece, with spaces in it, and <unk> may be spelt."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Split(Regex("[a-z]+ ?"), "isolated")
    t.train_from_iterator(lines_of(), trainers.UnigramTrainer(vocab_size=500, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>"))
    out = json.loads(t.to_str())
    out["added_tokens"], out["pre_tokenizer"] = [], None
    out["model"]["vocab"] += [["zz", -30.0], ["\u20ac\u20ac", -40.0]]
    return Tokenizer.from_str(json.dumps(out))


def word_piece(normalizer, size=700, prefix="##", extra=True, **model):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(lines_of(extra=extra), trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=marks, continuing_subword_prefix=prefix))
    out = json.loads(t.to_str())
    out["model"].update(model)
    t = Tokenizer.from_str(json.dumps(out))
    t.decoder = decoders.WordPiece(prefix, cleanup=not model)
    return t


def bert():
    t = word_piece(normalizers.BertNormalizer())
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def bert_cased():
    t = word_piece(normalizers.BertNormalizer(lowercase=False, strip_accents=False), extra=False)
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def bert_short():
    """No family: short words, another prefix, and parts of BertNormalizer alone."""
    return word_piece(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False),
                      size=400, prefix="@", max_input_chars_per_word=8)


FAMILIES = [llama2, llama_legacy, llama_first, phi3, gemma, metaspace, metaspace_fused, unmarked, t5, xlmr, albert, unigram_bytes,
            unigram_plain, bert, bert_cased, bert_short, converted]


def main():
    arguments = sys.argv[1:]
    keep = "--goldens" in arguments
    rest = [a for a in arguments if not a.startswith("--")]
    output = pathlib.Path(rest[0]) if rest else HERE / "testdata/text_tokenizers"
    output.mkdir(parents=True, exist_ok=True)
    goldens = {"made_with": f"tokenizers {tokenizers.__version__}", "seed": documents.SEED, "documents": DOCUMENTS,
               "documents_per_hash": DOCUMENTS_PER_HASH, "written": WRITTEN, "families": {}}
    texts = [documents.document(documents.SEED, i) for i in range(DOCUMENTS)]
    for family in FAMILIES:
        path = output / f"{family.__name__}.json"
        if not keep:
            path.write_text(json.dumps(json.loads(family().to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        tokenizer = Tokenizer.from_file(str(path))
        written = [tokenizer.encode(text, add_special_tokens=False).ids for text in WRITTEN]
        hashes = []
        for begin in range(0, DOCUMENTS, DOCUMENTS_PER_HASH):
            encoded = tokenizer.encode_batch_fast(texts[begin:begin + DOCUMENTS_PER_HASH], add_special_tokens=False)
            hashes.append(f"{documents.hash_of_ids([e.ids for e in encoded]):016x}")
        goldens["families"][family.__name__] = {
            "ids": written, "decoded": [tokenizer.decode(ids, skip_special_tokens=True) for ids in written], "hashes": hashes}
    (output / "goldens.json").write_text(json.dumps(goldens, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
