#!/usr/bin/env python3
"""Writes tests/jinja/fixtures/render_goldens.json: what transformers renders of templates; needs jinja2 3.1.6 and
transformers 5.23.0.

usage: make_render_goldens.py [TEMPLATE.jinja|tokenizer_config.json...] > fixtures/render_goldens.json

The templates of templates/ are rendered with conversations, the expressions and sources of render_cases.py with one set
of variables. With arguments, only their templates are rendered, with the tokens that a tokenizer_config.json names
(scripts/compare/chat_templates.sh). The clock stands at NOW. A case has the text with the spans of its generation blocks, in code points, or
what kind of error there is: "syntax", "raise" with its message, or "render".
"""
import datetime
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import jinja2  # noqa: E402
from transformers.utils import chat_template_utils  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import render_cases  # noqa: E402

NOW = datetime.datetime(2026, 7, 9, 13, 5, 8)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class StoppedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = StoppedClock


def filter_names():
    return set(jinja2.defaults.DEFAULT_FILTERS) | {"nosuchfilter"}


def starts_filter(text):
    name = ""
    for character in text:
        if not (character.isalnum() or character == "_"):
            break
        name += character
    rest = text[len(name):]
    if name == "d":
        return rest.startswith("(")
    if name == "e":
        return not rest.startswith((".", "["))
    if name == "items":
        return not rest.startswith((".", "["))
    return name in filter_names()


def expressions_of(text):
    """The expressions of a table: cut at | but where a filter follows."""
    for line in text.strip("\n").splitlines():
        parts, quote, depth, begin, at = [], None, 0, 0, 0
        while at < len(line):
            character = line[at]
            if quote:
                if character == "\\":
                    at += 1
                elif character == quote:
                    quote = None
            elif character in "'\"":
                quote = character
            elif character in "([{":
                depth += 1
            elif character in ")]}":
                depth -= 1
            elif character == "|" and depth <= 0 and not starts_filter(line[at + 1:]):
                parts.append(line[begin:at])
                begin = at + 1
            at += 1
        parts.append(line[begin:])
        yield from (part for part in parts if part)


def call(name, arguments, identity="abcdefghi"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def function(name, description, properties, required):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": required}}}


def conversations():
    def say(role, content, **more):
        return {"role": role, "content": content, **more}

    tools = [function("weather", "Tells the weather.\nOf a place.", {
        "place": {"type": "string", "description": "Where"}, "unit": {"type": "string", "enum": ["C", "F"]},
        "days": {"type": "array", "items": {"type": "integer"}}}, ["place"]),
        function("add", "Adds <two> & \"more\"", {"a": {"type": "number"}, "b": {
            "type": "object", "properties": {"é": {"type": "boolean"}}}}, ["a", "b"])]
    parts = [{"type": "text", "text": " Look: "}, {"type": "image"}, {"type": "text", "text": "What is it?"}]
    used = [say("user", "Weather in Łódź?"), say("assistant", "", tool_calls=[call("weather", {
        "place": "Łódź", "days": [1, 2]})]), say("tool", '{"t": 21.5}', tool_call_id="abcdefghi"),
        say("assistant", "It is 21.5 °C.")]
    return {
        "one": {"messages": [say("user", "Hi")]},
        "one_prompt": {"messages": [say("user", "Hi")], "add_generation_prompt": True},
        "no_prompt": {"messages": [say("user", "Hi")], "add_generation_prompt": False},
        "pair": {"messages": [say("user", "Hi"), say("assistant", "Hello!")]},
        "system": {"messages": [say("system", "Be brief. "), say("user", " Hi "), say("assistant", " Hello! \n")]},
        "system_prompt": {"messages": [say("system", "Be brief."), say("user", "Hi")], "add_generation_prompt": True},
        "long": {"messages": [say("user", "1+1?"), say("assistant", "2"), say("user", "And 2+2?"), say(
            "assistant", "4"), say("user", "Thanks\n\nBye")], "add_generation_prompt": True},
        "unicode": {"messages": [say("system", "日本語で"), say("user", "Grüße 🙂\u200b"), say("assistant", "Здравствуй, мир")]},
        "markup": {"messages": [say("user", "<b>\"a\" & 'b'</b> {{ x }} {% if %}\\n"), say("assistant", "<|im_end|>\t")]},
        "twice_user": {"messages": [say("user", "a"), say("user", "b")]},
        "only_system": {"messages": [say("system", "S")]},
        "assistant_first": {"messages": [say("assistant", "A"), say("user", "U")]},
        "none": {"messages": []},
        "think": {"messages": [say("user", "Q"), say("assistant", "<think>\nhm, 6*7\n</think>\n\n42"), say("user", "Sure?"), say(
            "assistant", "<think>\nyes\n</think>\n\nYes")]},
        "reasoning": {"messages": [say("user", "Q"), say("assistant", "42", reasoning_content="\nhm\n")]},
        "no_thinking": {"messages": [say("user", "Q")], "add_generation_prompt": True, "enable_thinking": False},
        "tools": {"messages": [say("system", "S"), say("user", "Weather?")], "tools": tools, "add_generation_prompt": True},
        "tools_used": {"messages": used, "tools": tools},
        "tools_two": {"messages": [say("user", "q"), say("assistant", None, tool_calls=[call("add", {"a": 1, "b": {}}), call(
            "add", "{\"a\": 1.50}", "123456789")]), say("tool", "1"), say("tool", "2"), say("assistant", "ok"), say(
                "user", "more")], "tools": tools, "add_generation_prompt": True},
        "tool_short_id": {"messages": [say("user", "q"), say("assistant", "", tool_calls=[call("add", {}, "x")])]},
        "parts": {"messages": [say("user", parts), say("assistant", [{"type": "text", "text": "A cat."}])]},
        "parts_odd": {"messages": [say("user", [{"type": "audio"}]), say("assistant", None)]},
        "date": {"messages": [say("user", "Hi")], "date_string": "26 Jul 2024", "tools": None},
        "odd_role": {"messages": [say("critic", "Hm"), say("developer", "D")], "add_generation_prompt": True},
        "no_content": {"messages": [{"role": "user"}, {"content": "x"}]},
    }


def render(source, variables):
    """The outcome as the fields of a case."""
    try:
        template = chat_template_utils._compile_jinja_template(source)
    except (jinja2.TemplateSyntaxError, SyntaxError):
        return {"error": "syntax"}
    blocks, spans = [], []
    try:
        with template.environment.activate_tracker(blocks, spans):
            for block in template.generate(**variables):
                blocks.append(block)
        outcome = {"text": "".join(blocks)}
        outcome["text"].encode()
        return {**outcome, "spans": spans} if spans else outcome
    except jinja2.TemplateError as error:
        raised = type(error) is jinja2.TemplateError and "raise_exception" in source
        return {"error": "raise", "message": str(error)} if raised else {"error": "render"}
    except Exception:  # of Python, whatever it is
        return {"error": "render"}


def print_goldens(templates, talks, cases, variables):
    def line(value):
        return json.dumps(value, ensure_ascii=False)

    print('{"variables": ' + line(variables) + ",")
    print('"templates": {')
    print(",\n".join(f"{line(name)}: {line(source)}" for name, source in templates.items()))
    print('},\n"talks": {')
    print(",\n".join(f"{line(name)}: {line(talk)}" for name, talk in talks.items()))
    print('},\n"cases": [')
    print(",\n".join(line(case) for case in cases))
    print("]}")


def token_text(value):
    return value.get("content") if isinstance(value, dict) else value


def template_of(path):
    """(the template, its special tokens), or None"""
    if path.suffix != ".json":
        return path.read_text(encoding="utf-8"), TOKENS
    config = json.loads(path.read_text(encoding="utf-8"))
    source = config.get("chat_template")
    if isinstance(source, list):
        source = next((named["template"] for named in source if named["name"] == "default"), None)
    tokens = {name: token_text(value) for name, value in config.items() if name.endswith("_token") and token_text(value)}
    return (source, tokens) if source else None


def print_goldens_of(paths):
    """Of templates that others published; what a conversation needs stands in its variables."""
    templates, talks, cases = {}, {}, []
    for path in paths:
        if (found := template_of(path)) is None:
            continue
        name, (source, tokens) = f"{path.parent.name}/{path.name}", found
        templates[name] = source
        for talk, variables in conversations().items():
            talks[f"{name}: {talk}"] = {**variables, **tokens}
            cases.append({"template": name, "talk": f"{name}: {talk}", **render(source, talks[f"{name}: {talk}"])})
    print_goldens(templates, talks, cases, {})


def main():
    if sys.argv[1:]:
        print_goldens_of([pathlib.Path(path) for path in sys.argv[1:]])
        return
    templates = {path.stem: path.read_text() for path in sorted((HERE / "templates").glob("*.jinja"))}
    talks = {name: {**talk, **TOKENS} for name, talk in conversations().items()}
    cases = []
    for template, source in templates.items():
        cases += [{"template": template, "talk": talk, **render(source, variables)} for talk, variables in talks.items()]
    sources = ["{{ " + expression + " }}" for expression in expressions_of(render_cases.EXPRESSIONS)]
    sources += render_cases.SOURCES.splitlines() + render_cases.BLOCKS
    cases += [{"source": source, **render(source, render_cases.VARIABLES)} for source in dict.fromkeys(sources)]
    refused = ["{{ " + expression + " }}" for expression in expressions_of(render_cases.REFUSED_EXPRESSIONS)]
    refused += render_cases.REFUSED_SOURCES
    for source in refused:
        assert "text" in render(source, render_cases.VARIABLES) or "generation" in source, source
        cases.append({"source": source, "refused": True})

    print_goldens(templates, talks, cases, render_cases.VARIABLES)


if __name__ == "__main__":
    main()
