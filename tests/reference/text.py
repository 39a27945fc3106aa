#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/fixtures/text: two small tokenizers, and 3,000 prompts with what diffusers 0.42.1 (ftfy 6.3.1) makes of them and the ids that
# the tokenizers library gives.
#
#     python3 tests/reference/text.py              needs ftfy, sentencepiece, tokenizers; run from the top folder
#
# A line of prompts.jsonl is an array [prompt, repeats, cleaned, suspect, sum_bundled, sum_split, sum_plain, sum_spm]. The prompt stands
# `repeats` times. cleaned is 0 when it equals the prompt, a text, or for a long one the FNV-1a sum of its bytes as a number. A sum of ids is
# FNV-1a (32 bits) over the ids as 4 bytes little endian, </s> added, cut to 512; of the bundled model, of fixtures "split" and "plain" by tokenizer.json, and
# of "plain" by spiece.model alone. 0 stands for a prompt of the one known exception (docs/text-cleaning.md). Encodings are not repaired (fix_encoding off); suspect is 1 where ftfy would have done so.
import html
import html.entities
import json
import os
import random
import re
import shutil
import unicodedata

import ftfy
import sentencepiece
from tokenizers import Tokenizer

HERE = "tests/fixtures/text"
BUNDLED = "models/wan-tiny-t2v/tokenizer"
COUNT = 3000
SENTENCES = """A red circle moves right on a white background.|A small blue star spins slowly, seen from above.|The café façade über der Straße, naïve déjà-vu.
Чёрный кот сидит на окне и смотрит на снег.|Ελληνικά γράμματα είναι ωραία, πολύ ωραία!|一个红色的圆形向右移动，白色背景。|色调艳丽，过曝，静态，细节模糊不清，字幕
مرحبا بالعالم، كرة حمراء تتحرك|שלום עולם, עיגול אדום|ลูกบอลสีแดงเคลื่อนที่|लाल गोला दाईं ओर चलता है|빨간 원이 오른쪽으로 움직인다|赤い丸が右に動く。ガラスの上で
Ünïcödé ẞ ﷺ 𝕏 👩‍🚀🏽 🇩🇪 Ⅷ ½ ² § © ® €5 £3|“Curly” ‘quotes’ — dashes… and “more”|Łódź, Žižek, Ærø, Þór, İstanbul, Nguyễn Văn
Two dogs playing in the snow at dusk, cinematic, 35 mm, shallow depth of field.|don't stop; it's 50% "done" (really?) [yes] {no} #tag @name a/b\\c""".replace("\n", "|").split("|")
PIECES = ["<", "&", "&amp;", "&lt;b&gt;", "&#", "&#x", ";", "amp;", "&eacute;", "&EACUTE;", "&not", "&notit;", "&copy", "&nbsp;", "&#128512;", "&#x1F600;", "&#150;",
          "&#0;", "&#xD800;", "&#55357;&#56832;", "&hellip;", "&fjlig;", "&FFLIG;", "&SZLIG;", "&amp;amp;amp;lt;", "\n", "<b>", "\x1b[31m", "\x1b[0m", "\x1b[", "\x1b", "\r\n", "\r",
          "\u2028", "\x85", "\x1c", "\ufeff", "\u200b", "\u3000", "\t", "\x0b", "\x0c", "  ", "\x00", "\x7f", "\u206a", "\ufff9", "\ufffc", "ﬁ", "ﬃ", "ŉ", "ǆ", "ﬅ", "Ａ", "ｶﾞ", "ﾡ", "￡",
          "e\u0301", "か\u3099", "a\u0327\u0301", "\u0301", "\x80", "\x92", "\x81", "</s>", "<pad>", "<unk>", "<0x41>", "<extra_id_0>", "<tok>", " <tok> ", "[ＴＡＧ]", "[TAG]", "▁", "▁▁", "\\ud83d\\ude00",
          "\\u0041", "\u202e", "\u200d", "\u00a0", "\u2009", "🙂", "👨‍👩‍👧", "🏴\U000e0067\U000e007f"]
CODE_PAGES = ["latin-1", "sloppy-windows-1252", "sloppy-windows-1251", "sloppy-windows-1250", "sloppy-windows-1253", "sloppy-windows-1254", "sloppy-windows-1257",
              "iso-8859-2", "macroman", "cp437", "cp1252"]


def clean(text, repair):
    text = ftfy.fix_text(text, fix_encoding=repair)
    text = html.unescape(html.unescape(text)).strip()
    return re.sub(r"\s+", " ", text).strip()


def fnv(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def id_sum(ids):
    ids = ids[:511] + [1]
    return fnv(b"".join(i.to_bytes(4, "little") for i in ids))


def loses_mark(text):
    """The bundled tokenizer.json drops a mark behind a character that NFKC changes, where both take less than 6 bytes; reel keeps it."""
    for first, second in zip(text, text[1:]):
        joins = unicodedata.category(second)[0] == "M" or second in "\u200c\u200d" or 0x1160 <= ord(second) <= 0x11FF
        if joins and unicodedata.normalize("NFKC", first) != first and len((first + second).encode()) < 6:
            return True
    return False


def random_prompt(rng, assigned, entities):
    kind = rng.random()
    if kind < 0.25:
        return " ".join(rng.choice(SENTENCES) for _ in range(rng.randint(1, 2)))
    if kind < 0.35:
        return "".join(chr(rng.choice(assigned)) for _ in range(rng.randint(0, 10)))
    if kind < 0.5:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 10)))
    if kind < 0.6:
        name = rng.choice(entities)
        return rng.choice(SENTENCES)[:20] + "&" + rng.choice([name, name.upper(), name.rstrip(";"), name[:-2], name.title()]) + rng.choice(["", " x", "x", ";"])
    if kind < 0.7:
        garbled = rng.choice(SENTENCES).encode().decode(rng.choice(CODE_PAGES), errors="replace")
        return garbled if rng.random() < 0.6 else rng.choice(SENTENCES)[:30] + " " + garbled
    if kind < 0.76:
        return "".join(rng.choice("abcdefghilmnorstu  ") for _ in range(rng.choice([10, 40, 120])))
    text = list(rng.choice(SENTENCES))
    for _ in range(rng.randint(1, 6)):
        text.insert(rng.randint(0, len(text)), rng.choice(PIECES))
    return "".join(text)


def make_prompts():
    rng = random.Random(20261201)
    assigned = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) != "Cn"]
    assigned = [c for c in assigned if not 0xE000 <= c <= 0xF8FF and c < 0xF0000]
    entities = sorted(html.entities.html5)
    out = [("", 1), ("a", 1), (" ", 3), ("&amp;", 300), ("red 红 ", 1700), ("x", 10000), ("👩‍🚀 ", 2500), ("</s>", 600), ("é<tok>", 2000)]
    while len(out) < COUNT:
        prompt = random_prompt(rng, assigned, entities)
        if not any(0xD800 <= ord(c) <= 0xDFFF for c in prompt):
            out.append((prompt, rng.randint(5, 60) if rng.random() < 0.03 else 1))
    return out


def train(name, **settings):
    corpus = [s for s in SENTENCES for _ in range(2)] + ["the cat and the dog run over the hill and under the tree"] * 3
    os.makedirs(f"{HERE}/{name}", exist_ok=True)
    path = f"{HERE}/{name}/spiece"
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_prefix=path, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1, hard_vocab_limit=False,
                                             minloglevel=2, **settings)
    os.remove(path + ".vocab")
    processor = sentencepiece.SentencePieceProcessor(model_file=path + ".model")
    return [[processor.id_to_piece(i), processor.get_score(i)] for i in range(processor.get_piece_size())]


def token(index, content, **flags):
    return {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | flags


def write_tokenizer(name, vocab, extra, normalizer, pre_tokenizer, byte_fallback):
    special = {"id": "</s>", "ids": [1], "tokens": ["</s>"]}
    template = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    tree = {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [token(0, "<pad>"), token(1, "</s>"), token(2, "<unk>")] + extra,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
            "post_processor": {"type": "TemplateProcessing", "single": template, "pair": template, "special_tokens": {"</s>": special}},
            "decoder": None, "model": {"type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": byte_fallback}}
    with open(f"{HERE}/{name}/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(tree, file, ensure_ascii=False, separators=(",", ":"))


def make_tokenizers():
    """split: as umT5 has it (identity, byte fallback, cut at blanks, added pieces behind the model's). plain: none of these, and more kinds."""
    vocab = train("split", vocab_size=700, normalization_rule_name="identity", byte_fallback=True, character_coverage=0.98)
    n = len(vocab)
    vocab += [[f"<extra_id_{i}>", 0.0] for i in (2, 1, 0)]
    extra = [token(n + i, f"<extra_id_{2 - i}>") for i in range(3)]
    extra += [token(n + 3, "<tok>", lstrip=True, rstrip=True, single_word=True), token(n + 4, "[ＴＡＧ]", normalized=True, special=False, lstrip=True)]
    blanks = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    write_tokenizer("split", vocab, extra, blanks, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}, True)
    vocab = train("plain", vocab_size=420, normalization_rule_name="identity", character_coverage=0.98)
    n = len(vocab)
    extra = [token(n, "<tok>", normalized=True, special=False), token(n + 1, "[TAG]", rstrip=True, normalized=True)]
    normal = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                                                  {"type": "Replace", "pattern": {"String": "``"}, "content": "\""}]}
    pre = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}]}
    write_tokenizer("plain", vocab, extra, normal, pre, False)


def main():
    make_tokenizers()
    libraries = [Tokenizer.from_file(path + "/tokenizer.json") for path in (BUNDLED, HERE + "/split", HERE + "/plain")]
    os.makedirs(HERE + "/only-spiece", exist_ok=True)
    shutil.copy(HERE + "/plain/spiece.model", HERE + "/only-spiece/spiece.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=HERE + "/only-spiece/spiece.model")
    with open(HERE + "/prompts.jsonl", "w", encoding="utf-8") as file:
        for prompt, repeats in make_prompts():
            text = prompt * repeats
            cleaned = clean(text, False)
            suspect = int(clean(text, True) != cleaned)
            sums = [id_sum(library.encode(cleaned, add_special_tokens=False).ids) for library in libraries]
            sums.append(id_sum(processor.encode(cleaned)))
            if loses_mark(cleaned):
                sums[0] = 0
            shown = 0 if cleaned == text else fnv(cleaned.encode()) if len(cleaned) > 400 else cleaned
            file.write(json.dumps([prompt, repeats, shown, suspect] + sums, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
