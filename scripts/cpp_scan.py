"""Finds the functions and classes of C++ sources, and their sizes, without compiling them.

A reader of tokens and braces for code as clang-format lays it out: it knows comments, literals, preprocessor lines,
namespaces, classes, initialiser lists and brace initialisers, and neither types nor templates. Of preprocessor branches
it reads all, or, where these do not balance, the first.
"""
import collections
import dataclasses
import re

SUFFIXES = (".h", ".cc", ".cu", ".cuh")

Token = collections.namedtuple("Token", "kind text line end_line")

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>(?:u8|u|U|L)?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*")
      | (?P<number>\.?\d(?:'(?=[0-9a-fA-F])|[eEpP][+-]|[\w.])*)
      | (?P<char>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<directive>\#(?:/\*.*?\*/|\\\n|[^\n])*)
      | (?P<space>\s+|\\\n)
      | (?P<punct>::|->|.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens_of(text, first_branch_only=False):
    """Tokens without comments, blanks and preprocessor lines."""
    tokens, line, skipping, nesting = [], 1, None, 0
    for match in TOKEN.finditer(text):
        kind, matched = match.lastgroup if match.lastgroup != "mark" else "raw", match[0]
        end_line = line + matched.count("\n")
        if kind == "directive":
            word = re.match(r"#\s*(\w*)", matched)[1]
            if word in ("if", "ifdef", "ifndef"):
                nesting += 1
            elif word in ("else", "elif") and first_branch_only and skipping is None:
                skipping = nesting
            elif word == "endif":
                if skipping == nesting:
                    skipping = None
                nesting -= 1
        elif kind not in ("comment", "space") and skipping is None:
            tokens.append(Token(kind, matched, line, end_line))
        line = end_line
    if not first_branch_only and sum((t.text == "{") - (t.text == "}") for t in tokens if t.kind == "punct") != 0:
        return tokens_of(text, first_branch_only=True)
    return tokens


@dataclasses.dataclass
class Function:
    name: str  # as it is written, behind the classes around it: "Outer::Method"
    line: int
    lines: int  # from the first token of its head to its closing brace
    table_lines: int = 0  # of these, lines of constants: static const, constexpr

    @property
    def size(self):
        return self.lines - self.table_lines


@dataclasses.dataclass
class Class:
    name: str  # "Outer::Inner"; namespaces are not part of it
    line: int
    lines: int = 0
    data_members: int = 0
    has_functions: bool = False  # constructors and operators among them, but for what is "= default"


CONTROL = {"if", "for", "while", "switch", "do", "try"}
OPEN, CLOSE = {"(": ")", "{": "}", "[": "]"}, {")", "}", "]"}


class Scan:
    """The functions and classes of one file."""

    def __init__(self, text):
        self.functions, self.classes = [], []
        self._tokens = tokens_of(text)
        self._at = 0
        self._scope(names=(), owner=None)
        if self._at < len(self._tokens):
            raise ValueError(f"line {self._tokens[self._at].line}: a brace that nothing opened")

    def _skip_block(self):
        """Moves behind the bracket that closes the one at the present place; returns that closing token."""
        depth = 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.kind == "punct":
                depth += (token.text in OPEN) - (token.text in CLOSE)
                if depth == 0:
                    return token
        raise ValueError("the file ends in a block")

    def _scope(self, names, owner):
        """Reads declarations up to the brace that closes the scope."""
        head = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind != "punct":
                head.append(token)
                self._at += 1
            elif token.text == "}":
                return
            elif token.text == ";":
                self._declaration(head, owner)
                head = []
                self._at += 1
            elif token.text in "([":
                begin = self._at
                self._skip_block()
                head += self._tokens[begin:self._at]
            elif token.text == ":" and [t.text for t in head] in (["public"], ["private"], ["protected"]):
                head = []
                self._at += 1
            elif token.text == "{":
                head = self._braces(head, names, owner)
            else:
                head.append(token)
                self._at += 1

    def _braces(self, head, names, owner):
        """At an opening brace behind `head`; returns the head that goes on behind the closing one."""
        flat = top_level(head)
        words = [t.text for t in flat]
        if "namespace" in words or words[:1] == ["extern"] and len(flat) == 2 and flat[1].kind == "string":
            self._at += 1
            self._scope(names, owner=None)
            self._at += 1
            return []
        if "enum" in words and "(" not in words:
            self._skip_block()
            return [head[0]]
        keyword = class_keyword(flat)
        if keyword is not None:
            return self._class(head, flat, keyword, names)
        if is_function_head(flat):
            if in_initialisers(flat) and (head[-1].kind == "word" or head[-1].text == ">"):
                begin = self._at
                self._skip_block()
                return head + self._tokens[begin:self._at]
            if owner is not None:
                owner.has_functions = True
            self._function(head, function_name(flat), names)
            return []
        begin = self._at
        if "=" in words and flat[words.index("=") + 1:][:1] and flat[words.index("=") + 1].text == "[":
            self._function(head, words[words.index("=") - 1], names)
        else:
            self._skip_block()
        return head + self._tokens[begin:self._at]

    def _class(self, head, flat, keyword, names):
        name = class_name(flat, keyword)
        found = Class("::".join((*names, name)), head[0].line)
        self.classes.append(found)
        self._at += 1
        self._scope((*names, name), owner=found)
        found.lines = self._tokens[self._at].end_line - found.line + 1
        self._at += 1
        return [head[0]._replace(kind="word", text="class-before")]

    def _function(self, head, name, names):
        begin = self._at
        end = self._skip_block()
        body = self._tokens[begin + 1:self._at - 1]
        self.functions.append(Function("::".join((*names, name)), head[0].line, end.end_line - head[0].line + 1,
                                       table_lines(body)))

    @staticmethod
    def _declaration(head, owner):
        """A declaration that ends in a semicolon: counts the data members of a class."""
        if owner is None or not head:
            return
        flat = top_level(head)
        words = [t.text for t in flat]
        if words[0] in ("using", "typedef", "friend", "static_assert", "template", "enum") or "static" in words:
            if words[0] == "template" and is_function_head(flat):
                owner.has_functions = True
            return
        if words == ["class-before"] or words[0] in ("class", "struct", "union") and len(words) == 2:
            return
        if is_function_head(flat):
            if "default" not in words:
                owner.has_functions = True
            return
        owner.data_members += 1 + words.count(",")


def top_level(head):
    """The tokens outside brackets and template arguments; of each pair of brackets the opening one stays."""
    flat, depth, angles = [], 0, 0
    for index, token in enumerate(head):
        if token.kind == "punct":
            if token.text in OPEN:
                if depth == 0 and angles == 0:
                    flat.append(token)
                depth += 1
                continue
            if token.text in CLOSE:
                depth -= 1
                continue
            if depth == 0 and token.text == "<" and opens_arguments(head, index):
                angles += 1
                continue
            if depth == 0 and token.text == ">" and angles > 0:
                angles -= 1
                continue
        if depth == 0 and angles == 0:
            flat.append(token)
    return flat


def opens_arguments(head, index):
    before = head[index - 1] if index else None
    return before is not None and before.kind == "word" and before.text != "operator"


def class_keyword(flat):
    """The place of class, struct or union where `flat` begins a class definition, else None."""
    for index, token in enumerate(flat):
        if token.text in ("class", "struct", "union"):
            rest = [t.text for t in flat[index + 1:]]
            plain = [text for at, text in enumerate(rest) if not (text == "(" and at and rest[at - 1] in ATTRIBUTES)]
            return index if "(" not in plain and "=" not in plain and rest else None
        if token.text in ("(", "="):
            return None
    return None


ATTRIBUTES = {"alignas", "__attribute__", "__align__", "noexcept", "decltype", "explicit", "requires", "__launch_bounds__"}


def class_name(flat, keyword):
    name = []
    for index, token in enumerate(flat[keyword + 1:], keyword + 1):
        if token.text == ":" or token.text == "final" and name:
            break
        if token.kind == "word" and token.text not in ATTRIBUTES or token.text == "::":
            name.append(token.text)
    return "".join(name) or "(unnamed)"


def parameter_list(flat):
    """The place of the bracket that opens the parameters, or None."""
    for index, token in enumerate(flat):
        if token.text == "=" and not (index and flat[index - 1].text in OPERATOR_PARTS):
            return None
        if token.text == "(" and index and (flat[index - 1].kind == "word" or "operator" in
                                            [t.text for t in flat[max(0, index - 4):index]]):
            if flat[index - 1].text in ATTRIBUTES or flat[index - 1].text == "operator":
                continue
            return index
    return None


OPERATOR_PARTS = {"operator", "=", "!", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^"}


def is_function_head(flat):
    return parameter_list(flat) is not None


def in_initialisers(flat):
    """Whether the head of a constructor has come to its initialisers."""
    return any(token.text == ":" for token in flat[parameter_list(flat):])


def function_name(flat):
    end = parameter_list(flat)
    texts = [t.text for t in flat[:end]]
    if "operator" in texts:
        begin = texts.index("operator")
    else:
        begin = end - 1
        if begin and texts[begin - 1] == "~":
            begin -= 1
    while begin >= 2 and texts[begin - 1] == "::" and flat[begin - 2].kind == "word":
        begin -= 2
    return "".join(texts[begin:end]).replace("operator", "operator ").rstrip()


def table_lines(body):
    """Lines of a function's own statements that define constants and have no control flow."""
    lines, statement, depth = 0, [], 0
    for token in body:
        statement.append(token)
        if token.kind == "punct":
            depth += (token.text in OPEN) - (token.text in CLOSE)
            if depth == 0 and token.text in (";", "}"):
                words = [t.text for t in statement]
                is_constant = words[0] == "constexpr" or words[0] == "static" and words[1] in ("const", "constexpr")
                if token.text == ";":
                    if is_constant and not CONTROL.intersection(t.text for t in statement if t.kind == "word"):
                        lines += token.end_line - statement[0].line + 1
                    statement = []
                elif not is_constant and "=" not in words:
                    statement = []
    return lines


def scan_file(path):
    try:
        return Scan(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def sources_of(source_dir, folders=("lib", "tools")):
    return [path for folder in folders for path in sorted((source_dir / folder).rglob("*")) if path.suffix in SUFFIXES]


def scan_folder(source_dir, folders=("lib", "tools")):
    """Pairs of a path below the source folder and its Scan."""
    return [(path.relative_to(source_dir), scan_file(path)) for path in sources_of(source_dir, folders)]


Entry = collections.namedtuple("Entry", "kind place name")


def sizes_of(scans):
    """The largest size of everything found, by Entry; `scans` are those of scan_folder.

    "function" and "class" are lines, a class with its member functions of all files; "members" are the data members of
    a class that has functions. A place is a layer, lib/<layer>, or tools.
    """
    sizes = collections.Counter()
    classes = {}
    for path, scan in scans:
        place = place_of(path)
        for found in scan.classes:
            entry = Entry("class", place, found.name)
            # A class of a source file is its own; one of a header has functions in any file of the layer.
            home = path if path.suffix in (".cc", ".cu") else None
            classes.setdefault((place, found.name), []).append(home)
            sizes[entry, home] = max(sizes[entry, home], found.lines)
            if found.has_functions:
                members = Entry("members", place, found.name)
                sizes[members, None] = max(sizes[members, None], found.data_members)
    for path, scan in scans:
        place = place_of(path)
        for function in scan.functions:
            entry = Entry("function", place, function.name)
            sizes[entry, None] = max(sizes[entry, None], function.size)
            owner = function.name.rpartition("::")[0]
            homes = classes.get((place, owner), [])
            home = path if path in homes else None
            if homes and (home is not None or None in homes) and not is_inside(scan, owner, function):
                sizes[Entry("class", place, owner), home] += function.lines
    largest = collections.Counter()
    for (entry, _), size in sizes.items():
        largest[entry] = max(largest[entry], size)
    return largest


def place_of(path):
    return "/".join(path.parts[:2]) if path.parts[0] == "lib" else path.parts[0]


def is_inside(scan, owner, function):
    """Whether the function stands in the definition of its class, whose lines hold it already."""
    return any(found.name == owner and found.line <= function.line < found.line + found.lines for found in scan.classes)
