"""Documents that tokenizers disagree about, if they disagree: the same ones here and in random_documents.h.

document(seed, index) depends on its arguments alone."""
SEED = 20261121
MASK = (1 << 64) - 1

# Parts of documents, and what small tokenizers are trained on.
TEXTS = [
    "the", " the", "The quick brown fox", " jumps over", "'s", "'S", "'\u017f", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'d", "'",
    "''", "I'll've", " ", "  ", "   ", "\n", "\r\n", "\n\n", " \n ", "\t", "\t\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b",
    "\u180e", "\x00", "\x1b[0m", "1", "12", "123", "1234567", "3.14", "\u0663\u0664", "\u00b2\u00bd", "\u2167", "\u4e00\u4e8c",
    "x = y + 1;", "if (a != b) {\n\treturn -1;\n}", "    def f(self):\n        pass\n", "http://a.b/c?d=e&f", "!!!", "...", " --", "?!\n\n",
    "<|endoftext|>", "<|endoftext", "|>", "<|im_start|>", "<|im_end|>user\n", "<|begin_of_text|>", "<|eot_id|>", "<tool_call>", "</s>",
    "<mask>", " <mask> ", "<right>  ", "  <both>\n", "word", "words", "a word b", "wor", "<unk>", "caf\u00e9", "cafe\u0301",
    "\u00e9t\u00e9", "e\u0301te\u0301", "\u0301", "a\u0323\u0302", "\u1eb9\u0302", "\u1e0b\u0323", "A\u030a", "\u212b", "\u2126", "\u0958", "\u1100\u1161\u11a8",
    "\uac00\u11a8", "\ud55c\uad6d\uc5b4", "\u65e5\u672c\u8a9e\u3067\u3059\u3002", "\u041f\u0440\u0438\u0432\u0435\u0442", "\u0645\u0631\u062d\u0628\u0627",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "Stra\u00dfe", "\u1e9e", "\u0130i\u0131", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea", "\u270b\U0001f3fd", "\U0001d400\U0001d7d9", "\ufeff", "\ufffd", "\uffff", "\U0010ffff", "\U000e0041", "\u09f7", "\u2180",
]

WRITTEN = [
    "", " ", "  ", "\n", "\n\n", " \n", "\n ", "\r\n\r\n", "a", " a", "a ", "a  b", "a \n b", "Hello world", "Hello  world\n",
    "it's I'LL we'Re '\u017f x's's 'sun '", "1 12 123 1234 12345", "a1b2 3c", "x  1", "!? ?!  !", "foo\n\n  bar\n", "\tfoo \tbar",
    "a\u00a0b \u3000c", "a\x00b", "caf\u00e9 cafe\u0301", "\u212b\u2126\u0958", "\u1100\u1161\u11a8\uac00\u11a8",
    "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|><|endoftext|>\u0301", "<|endoftext", " <mask>  x", "x <right>  y", "  <both>  ",
    "word words sword word", "a  b   c" + " " * 30 + "d", "\u0301a", "\U0001f600\U0001f468\u200d\U0001f469", "\ufeffa\ufffd",
    "The quick brown fox jumps over the lazy dog.", "if (x) {\n\treturn y;\n}\n", "a" * 300, "ab" * 200 + "!", "=" * 100, " " * 100,
    "\n" * 60 + "x", "<|im_start|>user\nhi<|im_end|>\n<tool_call>{}</tool_call>", "e\u0301t\u00e9 \u00e9t\u00e9 ete\u0301",
]


class Random:
    """SplitMix64."""

    def __init__(self, seed, index):
        self.state = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03) & MASK

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) % bound


def code_point(random):
    plane = random.below(8)
    if plane == 0:
        return random.below(0x80)
    if plane == 1:
        return random.below(0x800)
    if plane == 2:
        return 0x300 + random.below(0x70)
    if plane == 3:
        return 0x1100 + random.below(0x100)
    if plane == 4:
        return 0x2000 + random.below(0x200)
    if plane < 7:
        c = random.below(0x10000)
    else:
        c = random.below(0x110000)
    return 0x20 if 0xD800 <= c <= 0xDFFF else c


def document(seed, index):
    random = Random(seed, index)
    out = []
    for _ in range(random.below(20)):
        kind = random.below(10)
        if kind < 4:
            out.append(TEXTS[random.below(len(TEXTS))])
        elif kind == 4:
            out.append("".join(chr(97 + random.below(26)) for _ in range(1 + random.below(9))))
        elif kind == 5:
            out.append(" " * (1 + random.below(4)))
            out.append("\n" * random.below(3))
        elif kind == 6:
            out.append("".join(chr(33 + random.below(94)) for _ in range(1 + random.below(6))))
        elif kind == 7:
            out.append(" " + "".join(chr(97 + random.below(26)) for _ in range(1 + random.below(6))))
        elif kind == 8:
            out.append("".join(chr(code_point(random)) for _ in range(1 + random.below(5))))
        elif random.below(16) == 0:
            out.append(TEXTS[random.below(len(TEXTS))] * (1 + random.below(200)))
        else:
            out.append("".join(chr(48 + random.below(10)) for _ in range(1 + random.below(5))))
    return "".join(out)


def fnv(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def hash_of_ids(lists):
    """FNV-1a of the ids as 4 little-endian bytes, each list ended by ffffffff."""
    data = b"".join(b"".join(i.to_bytes(4, "little") for i in ids) + b"\xff\xff\xff\xff" for ids in lists)
    return fnv(data)


def hash_of_text(texts):
    return fnv(b"".join(text.encode() + b"\xff" for text in texts))
