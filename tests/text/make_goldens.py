#!/usr/bin/env python3
"""Writes the expectations of the text tests: what Python's jinja2 (with the settings and functions
of transformers) renders, and what Python's tokenizers encodes.

    python3 tests/text/make_goldens.py [--smollm2 FILE.gguf]

Needs jinja2 and tokenizers; --smollm2 also needs gguf and writes goldens/smollm2.json.
"""
import argparse
import datetime
import json
import pathlib
import random

import jinja2
import jinja2.ext
import jinja2.sandbox
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
OUT = HERE / "goldens"
NOW = 1786000000  # 2026-08-06, 07:06:40 UTC
BOS, EOS = "<s>", "</s>"


# ---- templates -------------------------------------------------------------------------------


class Generation(jinja2.ext.Extension):
    """{% generation %}: the block as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def strftime_now(fmt):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(fmt)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(source, document):
    variables = {"tools": None, "documents": None, "add_generation_prompt": False,
                 "bos_token": BOS, "eos_token": EOS}
    variables.update(document)
    try:
        return {"text": environment().from_string(source).render(**variables)}
    except (jinja2.exceptions.UndefinedError, jinja2.exceptions.TemplateSyntaxError):
        raise
    except jinja2.exceptions.TemplateError as error:
        return {"raised": str(error)}


WEATHER = {"type": "function", "function": {
    "name": "geo.weather", "description": "Weather of a place.\nNow or \"later\" <b>&'</b> – è",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "city"},
        "unit": {"type": "string", "enum": ["°C", "°F"], "default": "°C"},
        "days": {"type": "array", "items": {"type": "integer"}},
        "deep": {"type": "object", "properties": {"x": {"type": ["null", "number"]}},
                 "required": ["x"]},
        "flag": {"type": "boolean", "default": False}},
        "required": ["place", "deep"]},
    "return": {"type": "number"}, "strict": True, "weight": 1.0, "tiny": 1e-7, "none": None}}
ADD = {"type": "function", "function": {"name": "add", "description": "Sum", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}}}}}

HELLO = [{"role": "user", "content": "Hello, wörld 🦊!"}]
SYSTEM = [{"role": "system", "content": "  Be brief.\n"}] + HELLO
TURNS = SYSTEM + [
    {"role": "assistant", "content": "<think>\nhm, 1 < 2\n</think>\n\nHi "},
    {"role": "user", "content": "Zwei\nZeilen\n"},
    {"role": "assistant", "content": "eins\u2028zwei"},
    {"role": "user", "content": "日本語のテキスト"}]
CALLS = SYSTEM + [
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call00001", "type": "function", "function": {
            "name": "geo.weather", "arguments": {"place": "Zürich \"x\"", "days": [1, 2],
                                                 "ratio": 0.5, "deep": {"x": None}}}}]},
    {"role": "tool", "tool_call_id": "call00001", "name": "geo.weather", "content": "{\"t\": 21}"},
    {"role": "user", "content": "and <tomorrow>?"}]
TWO_CALLS = HELLO + [
    {"role": "assistant", "content": "Looking.", "tool_calls": [
        {"id": "aaaaaaaaa", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
        {"id": "bbbbbbbbb", "function": {"name": "add", "arguments": {"a": 2}}}]},
    {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "1"},
    {"role": "tool", "tool_call_id": "bbbbbbbbb", "content": "2"}]
PARTS = [{"role": "system", "content": [{"type": "text", "text": "sys"}]},
         {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " what? "}]}]
REASONED = HELLO + [{"role": "assistant", "content": "Done.", "reasoning_content": "\nplan\n"}]
WRONG_TURN = HELLO + HELLO

DOCUMENTS = {
    "hello": {"messages": HELLO, "add_generation_prompt": True},
    "system": {"messages": SYSTEM, "add_generation_prompt": True},
    "turns": {"messages": TURNS, "add_generation_prompt": True},
    "turns_open": {"messages": TURNS},
    "tools": {"messages": SYSTEM, "tools": [WEATHER, ADD], "add_generation_prompt": True},
    "calls": {"messages": CALLS, "tools": [WEATHER], "add_generation_prompt": True},
    "two_calls": {"messages": TWO_CALLS, "tools": [ADD], "add_generation_prompt": True},
    "parts": {"messages": PARTS, "add_generation_prompt": True},
    "no_thinking": {"messages": HELLO, "add_generation_prompt": True, "enable_thinking": False},
    "reasoned": {"messages": REASONED, "add_generation_prompt": False},
    "dated": {"messages": HELLO, "date_string": "1 Jan 2025", "tools_in_user_message": False,
              "tools": [ADD]},
    "wrong_turn": {"messages": WRONG_TURN},
    "many": {"messages": HELLO * 12},
}

# Template, documents that it can take.
TEMPLATES = {
    "chatml": ["hello", "system", "turns", "turns_open", "many"],
    "tools_thinking": ["hello", "system", "turns", "turns_open", "tools", "calls", "two_calls",
                       "no_thinking", "reasoned", "many"],
    "headers": ["hello", "system", "turns", "tools", "calls", "two_calls", "dated"],
    "inst": ["hello", "system", "turns", "tools", "calls", "wrong_turn", "two_calls", "many"],
    "turns": ["hello", "system", "turns", "turns_open", "parts", "wrong_turn"],
    "macros": ["hello", "turns", "tools", "calls", "many"],
    "generation": ["hello", "turns"],
}

SNIPPETS = [
    "{{ none }} {{ true }} {{ false }} {{ 1 }} {{ 1.0 }} {{ 'x' }}",
    "{{ 1e20 }} {{ 1.5e-7 }} {{ 123456789.125 }} {{ 1e15 }} {{ 1e16 }} {{ 0.0001 }} {{ 0.00001 }}",
    "{{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 10 }} {{ -7 // 2 }} {{ 6 / 2 }}",
    "{{ [1, 'a', none, true, [2.5]] }}",
    "{{ {'a': 1, 'b': [true, none], 'c': {'d': 'e'}} }}",
    "{{ 'it\\'s' }} {{ ['it\\'s', 'q\"q'] }}",
    "{{ data | tojson }}",
    "{{ data | tojson(indent=2) }}",
    "{{ data | tojson(indent=4, sort_keys=true) }}",
    "{{ data | tojson(ensure_ascii=true) }}",
    "{{ data | tojson(separators=(',', ':')) }}",
    "{{ [] | tojson }}{{ {} | tojson }}{{ [] | tojson(indent=2) }}{{ {} | tojson(indent=2) }}",
    "{{ '</script>&\\'\"\\\\' | tojson }}",
    "{{ data.list[1:] }} {{ data.list[::-1] }} {{ data.list[-1] }} {{ 'abc'[::-1] }} {{ 'aéz'[1] }}",
    "{{ ' a b  c '.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }}",
    "{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b '.rsplit() }} {{ 'a b c'.rsplit(none, 1) }}",
    "{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }}",
    "{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'x'.removesuffix('y') }}",
    "{{ ' x '.strip() }}|{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|{{ 'xxaxx'.strip('x') }}",
    "{{ 'aXb'.lower() }} {{ 'aXb'.upper() }} {{ 'hello world'.title() }} {{ 'hELLO'.capitalize() }}",
    "{{ 'a-b-c'.replace('-', '+') }} {{ 'a-b-c'.replace('-', '+', 1) }}",
    "{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abcabc'.find('c') }} {{ 'abc'.find('x') }} {{ 'abab'.count('ab') }}",
    "{{ 'a\\nb\\n'.splitlines() }} {{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'ab'.isalpha() }}",
    "{{ '-'.join(['a', 'b']) }} {{ ['a', 'b'] | join(', ') }} {{ [1, 2] | join }}",
    "{{ '{} and {}'.format(1, 'x') }} {{ '%s-%d' | format('a', 3) }} {{ '%.2f' | format(2.5) }}",
    "{{ data.rows[0].items() | list }} {{ data.map.keys() | list }} {{ data.map.values() | list }}",
    "{{ data.get('nope') }} {{ data.get('nope', 3) }} {{ data.get('int') }}",
    "{% for k, v in data.map.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in data.map | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{{ undefined_name }}|{{ data.nope }}|{{ undefined_name is defined }}|{{ data.nope is undefined }}",
    "{{ undefined_name | default('d') }} {{ '' | default('e', true) }} {{ none | default('f') }}",
    "{{ 'a' is string }} {{ 1 is string }} {{ data is mapping }} {{ [] is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }}",
    "{{ [] is sequence }} {{ 'a' is sequence }} {{ data is sequence }} {{ 1 is sequence }} {{ (1, 2) is sequence }}",
    "{{ 1 is number }} {{ true is number }} {{ 1.5 is float }} {{ 1 is integer }} {{ true is boolean }} {{ none is none }}",
    "{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 3 is odd }} {{ 4 is even }} {{ 4 is divisibleby(2) }}",
    "{{ 1 is eq(1) }} {{ 'a' is in(['a']) }} {{ 'x' in 'xyz' }} {{ 'a' in data }} {{ 1 not in [2] }}",
    "{{ [3, 1, 2] | sort }} {{ [3, 1, 2] | sort(reverse=true) }} {{ [3, 1, 2] | max }} {{ [1, 2, 3] | sum }}",
    "{{ [{'a': 1}, {'a': 2}] | map(attribute='a') | list }} {{ ['a', 'b'] | map('upper') | list }}",
    "{{ data.rows | selectattr('ok') | map(attribute='n') | list }} {{ data.rows | rejectattr('ok') | list | length }}",
    "{{ data.rows | selectattr('n', 'equalto', 2) | list }} {{ data.rows | selectattr('n', 'gt', 1) | map(attribute='n') | join(',') }}",
    "{{ [1, 2, 3, 4] | select('even') | list }} {{ [1, 2, 3] | reject('odd') | list }}",
    "{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ 'abc' | first }} {{ [1, 2, 3] | length }} {{ data | length }}",
    "{{ [1, 2, 2, 3] | unique | list }} {{ [1, 2, 3] | reverse | list }} {{ 'abc' | reverse }}",
    "{{ 'a b' | title }} {{ 'AB' | lower }} {{ '  x ' | trim }} {{ 'hELLO' | capitalize }} {{ 'a' | upper }}",
    "{{ 'one\\ntwo\\n\\nthree' | indent(4) }}|{{ 'one\\ntwo' | indent(2, true) }}",
    "{{ 3.7 | int }} {{ '12' | int }} {{ '3.5' | float }} {{ 3 | float }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ -3 | abs }}",
    "{{ 42 | string ~ 'x' }} {{ 1 ~ 2 }} {{ 'a' * 3 }} {{ [1] + [2] }} {{ 'a' + 'b' }}",
    "{{ 'a' if data.int > 3 else 'b' }} {{ 'a' if false }}|{{ data.int and 'yes' }} {{ none or 'no' }} {{ not none }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex0 }} {% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem }}-{{ loop.nextitem }} {% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{% for i in [] %}x{% else %}empty{% endfor %}",
    "{% for i in [1, 2, 3] if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }} {% endfor %}{{ (1, 2) }} {{ (1,) }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, b=3) }} {{ m(b=4, a=0) }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = [1, 2] %}{{ t[0] }}{{ t.0 }}",
    "{% if data.int == 3 and (data.map or false) %}yes{% elif true %}no{% endif %}",
    "  {% if true %}  \n  x\n  {% endif %}  \ny\n",
    "a\n  {#- c -#}  \n b {%+ if true %} c {% endif +%}\n d\n",
    "{%- for i in [1] -%}\n  {{ i }}\n{%- endfor -%}\n\nend\n",
    "{{ 'é' | length }} {{ '🦊x'[0] }} {{ '🦊' | tojson }} {{ 'ß'.upper() }}",
    "{{ dict(a=1, b=2) }} {{ {'a': 1}.a }} {{ {'a b': 1}['a b'] }} {{ {1: 2}[1] }}",
    "{{ data.text.split('\\n')[0] }} {{ data.text | replace('\\n', ' ') }} {{ data.text.strip().split('\\n') | length }}",
    "{{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | slice(2) | list }}",
    "{{ data.big }} {{ data.neg }} {{ data.float }} {{ [data.float] }}",
    "{{ 10 > 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ [1, 2] == [1, 2] }} {{ 1 != 2 }} {{ 1 < 2 < 3 }}",
    "{{ '%s' | format(none) }} {{ true | string }} {{ none | string }} {{ [true] | string }}",
    "{{ raise_exception('no ' ~ data.int) }}",
    "{{ 'a' ~ raise_exception('inside') }}",
    "{% macro m() %}{{ raise_exception('in a macro') }}{% endmacro %}{% if true %}{{ m() }}{% endif %}",
    "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %b %-m/%y %I%p %e %%') }}",
    "{{ data.list | tojson | length }} {{ (data | tojson)[:5] }} {{ data.map | items | list }}",
    "{{ 'x' | e }} {{ '<' | e }} {{ '<' | safe }}",
    "{{ data.text | trim | indent(2, first=true) }}",
    "{{ 'Hello' | replace('l', 'L') }}{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A'] | sort(case_sensitive=true) }}",
    "{{ data.rows | groupby('ok') | length }} {% for g in data.rows | groupby('ok') %}{{ g.grouper }}:{{ g.list | length }} {% endfor %}",
    "{{ data.rows | map(attribute='n') | sum }} {{ data.rows | sum(attribute='n') }} {{ data.rows | map(attribute='zz', default=7) | list }}",
    "{{ data.int is sameas(data.int) }} {{ 'x' is not none }} {{ 'abc' is lower }}",
]

DATA = {"list": [1, "two", None, True], "map": {"z": 1, "a": "é"}, "int": 3, "big": 12345678901234,
        "neg": -5, "float": 2.5, "text": "line <1>\nline & 2\n", "quote": "\"\\\b\u0007é\u2028\U0001F98A",
        "rows": [{"n": 1, "ok": True}, {"n": 2, "ok": False}, {"n": 3, "ok": True}]}


def template_goldens():
    cases = []
    for name, documents in TEMPLATES.items():
        source = (HERE / "templates" / f"{name}.jinja").read_text()
        for document in documents:
            cases.append({"name": f"{name}/{document}", "template": name,
                          "document": DOCUMENTS[document], **render(source, DOCUMENTS[document])})
    for index, source in enumerate(SNIPPETS):
        document = {"messages": [], "data": DATA}
        cases.append({"name": f"snippet {index}", "source": source,
                      **render(source, document)})
    write("templates", {"now": NOW, "bos": BOS, "eos": EOS, "data": DATA, "cases": cases})


# ---- tokenizers ------------------------------------------------------------------------------

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


# As the tokenizer.json files of these families state them: pre-tokenizer, NFC, ignore_merges.
PRE = {
    "gpt-2": ([byte_level(True)], False, False),
    "smollm": ([pre_tokenizers.Digits(individual_digits=True), byte_level(True)], False, False),
    "llama-bpe": ([split(CONTRACTED + r"|\p{N}{1,3}" + TAIL), byte_level(False)], False, True),
    "qwen2": ([split(CONTRACTED + r"|\p{N}" + TAIL), byte_level(False)], True, False),
    "default": ([split(r"[\p{P}\$\+<=>\^~\|]+"), split(GPT2), split(r"\p{N}+"),
                 split("[0-9][0-9][0-9]"), byte_level(False)], False, False),
}

SCRIPTS = ["the quick brown fox jumps over", "Straße über Köln größer", "быстрая лиса и собака",
           "日本語のテキスト処理は面白い", "한국어 문장 하나", "नमस्ते दुनिया कैसे", "مرحبا بالعالم",
           "שלום עולם", "γειά σου κόσμε", "ภาษาไทย ง่าย", "🦊🎉👩‍👩‍👧 🇨🇭 ✨", "e\u0301a\u0308 ﬁ ½ Ⅷ ²",
           "0123456789 3.14 1,000 ٣٤ 2024-01-02", "I'm you're we'VE don't IT'S 'll", "\t\n\r\n   \n\n  \u00a0\u2003",
           "!?.,;:-_()[]{}<>|/\\@#$%^&*~`\"'", "def f(x):\n    return x**2  # ok\n", "<|im_start|> <s> <0x41> </s>"]


def random_texts(count, seed, specials=()):
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 5)):
            kind = rng.random()
            script = rng.choice(SCRIPTS)
            if kind < 0.55:
                begin = rng.randrange(len(script))
                text += script[begin:begin + rng.randint(1, 12)]
            elif kind < 0.8:
                text += "".join(rng.choice(script) for _ in range(rng.randint(1, 6)))
            elif kind < 0.9:
                text += rng.choice([" ", "  ", "\n", "\n\n", "\t", " \n "])
            elif kind < 0.95 or not specials:
                code = rng.choice([rng.randint(0x20, 0x24F), rng.randint(0x370, 0x1FFF),
                                   rng.randint(0x3000, 0xD7FF), rng.randint(0x10000, 0x1F9FF), rng.randint(1, 31)])
                text += chr(code)
            else:
                text += rng.choice(specials)
        texts.append(text)
    return texts


def byte_level_tokenizer(vocab, merges, pre, special):
    steps, nfc, ignore_merges = PRE[pre]
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if nfc:
        tok.normalizer = normalizers.NFC()
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return tok


def train_small():
    """A byte-level vocabulary of 700 tokens: enough that merges matter."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = byte_level(True)
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<|end|>", "<|im_start|>", "<|im_end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tok.train_from_iterator(SCRIPTS * 3 + ["123 456 7890 1234567", "I'm it's you're THEY'RE"] * 4, trainer)
    model = json.loads(tok.to_str())["model"]
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    return model["vocab"], merges


def byte_level_goldens():
    vocab, merges = train_small()
    special = ["<|end|>", "<|im_start|>", "<|im_end|>"]
    texts = random_texts(60, 1, special)
    cases = []
    for pre in PRE:
        tok = byte_level_tokenizer(vocab, merges, pre, special)
        ids = [tok.encode(text, add_special_tokens=False).ids for text in texts]
        decoded = [tok.decode(one, skip_special_tokens=False) for one in ids]
        cases.append({"pre": pre, "ids": ids, "decoded": decoded})
    tokens = sorted(vocab, key=vocab.get)
    write("byte_level", {"tokens": tokens, "types": [3 if t in special else 1 for t in tokens],
                         "merges": [" ".join(m) for m in merges], "texts": texts, "cases": cases})
    tok = byte_level_tokenizer(vocab, merges, "smollm", special)
    (OUT / "byte_level_tokenizer.json").write_text(
        json.dumps(json.loads(tok.to_str()), ensure_ascii=False, indent=0) + "\n")


def merges_from_scores(tokens, scores):
    """As transformers converts a GGUF that states scores only."""
    vocab = dict(zip(tokens, scores))
    merges = []
    for merge, score in vocab.items():
        local = []
        for index in range(1, len(merge)):
            left, right = merge[:index], merge[index:]
            if left in vocab and right in vocab:
                local.append((left, right, score))
        merges.extend(sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]), reverse=True))
    merges = sorted(merges, key=lambda x: x[2], reverse=True)
    return [(left, right) for left, right, _ in merges]


def sentencepiece_goldens():
    words = "\u2581the \u2581quick \u2581brown \u2581fox \u2581jumps over ing \u2581I \u2581a \u2581w \u2581\u2581 \u2581\u2581\u2581 日本 本語 для ung \u2581über".split(" ")
    pieces, seen = [], set()
    for word in words:
        for end in range(2, len(word) + 1):
            for piece in (word[:end], word[end - 2:end], word[len(word) - end:]):
                if piece not in seen:
                    seen.add(piece)
                    pieces.append(piece)
    letters = sorted(set("".join(words)) | set("abcdefghijklmnopqrstuvwxyz.,!?0123456789\n"))
    pieces.sort(key=lambda p: (-len(p) % 3, len(p)))
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["<image>"] + pieces + letters
    types = [2, 3, 3] + [6] * 256 + [4] + [1] * (len(pieces) + len(letters))
    scores = [0.0] * 260 + [float(-i) for i in range(len(pieces))] + [float(-1000 - i) for i in range(len(letters))]
    assert len(set(tokens)) == len(tokens) == len(scores) == len(types)
    texts = random_texts(60, 2, ["<s>", "<image>"]) + ["the quick brown fox", " the", "  the   fox", "", "<s>the", "\u2581x"]
    cases = []
    for prefix in (True, False):
        tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges_from_scores(tokens, scores),
                                   unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        steps = [normalizers.Prepend("\u2581")] if prefix else []
        tok.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "\u2581")])
        tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
                                        + ([decoders.Strip(" ", 1, 0)] if prefix else []))
        tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in tokens[:3]])
        tok.add_tokens([AddedToken("<image>", special=False, normalized=False)])
        ids = [tok.encode(text, add_special_tokens=False).ids for text in texts]
        cases.append({"add_space_prefix": prefix, "ids": ids,
                      "decoded": [tok.decode(one, skip_special_tokens=False) for one in ids]})
        if prefix:
            (OUT / "sentencepiece_tokenizer.json").write_text(
                json.dumps(json.loads(tok.to_str()), ensure_ascii=False, indent=0) + "\n")
    write("sentencepiece", {"tokens": tokens, "scores": scores, "types": types, "texts": texts, "cases": cases})


def smollm2_goldens(path):
    import gguf
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    special = [t for t, kind in zip(tokens, types) if kind == 3]
    tok = byte_level_tokenizer({t: i for i, t in enumerate(tokens)}, merges, "smollm", special)
    texts = random_texts(1000, 3, special)
    source = fields["tokenizer.chat_template"].contents()
    chats = []
    for name in ("hello", "system", "turns", "turns_open", "many"):
        document = DOCUMENTS[name]
        text = environment().from_string(source).render(
            bos_token=tokens[1], eos_token=tokens[2], tools=None, documents=None,
            **{"add_generation_prompt": False, **document})
        chats.append({"document": document, "text": text,
                      "ids": tok.encode(text, add_special_tokens=False).ids})
    ids = [tok.encode(text, add_special_tokens=False).ids for text in texts]
    decoded = [tok.decode(one, skip_special_tokens=False) for one in ids]
    # The vocabulary lacks some control characters, which encoding drops.
    write("smollm2", {"texts": texts, "chats": chats, "ids": ids,
                      "decoded_differs": {str(i): d for i, d in enumerate(decoded) if d != texts[i]}})


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (OUT / f"{name}.json").write_text(text + "\n")
    print(f"{name}.json: {len(text)} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smollm2")
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    print(f"jinja2 {jinja2.__version__}, tokenizers {tokenizers.__version__}")
    template_goldens()
    byte_level_goldens()
    sentencepiece_goldens()
    if arguments.smollm2:
        smollm2_goldens(arguments.smollm2)


if __name__ == "__main__":
    main()
