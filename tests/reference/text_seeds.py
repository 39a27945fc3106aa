#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/fuzz/seeds/clean and tests/fuzz/seeds/tokenizer: one small valid input for every branch that random bytes hardly reach.
#
#     python3 tests/reference/text_seeds.py        needs sentencepiece; run from the top folder
import base64
import io
import json
import os
import struct

import sentencepiece

SEEDS = "tests/fuzz/seeds"
CLEAN = ["A red circle &amp; a “blue” star…", "<b>&amp;lt;</b>\n&eacute; &#x1F600; &#150; &notit;", "\x1b[31mred\x1b[0m ﬁ Ａ ｶﾞ\r\n\u2028e\u0301 \ufeff",
         "schÃ¶n âœ” РџСЂРёРІРµС‚ ДџВµ \ufffd", "&amp;amp;amp;#38;#38;lt; &SZLIG;"]


def spiece():
    corpus = ["a red circle moves right", "红 圆 e\u0301", "blue"] * 3
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
                                             vocab_size=40, hard_vocab_limit=False, num_threads=1, minloglevel=2, normalization_rule_name="identity")
    return model.getvalue()


def token(index, content, **flags):
    return {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | flags


def character_map():
    """A double array of 512 units with the one key "x", which becomes a blank."""
    unit = [0] * 512
    key = ord("x")
    unit[0] = 1 << 10
    unit[1 ^ key] = key | 0x100 | 1 << 10 | 0x200
    unit[1 ^ key ^ 256] = 0x80000000
    return base64.b64encode(struct.pack("<I", 2048) + struct.pack("<512I", *unit) + b" \0").decode()


def trees(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocab = [[processor.id_to_piece(i), round(processor.get_score(i), 3)] for i in range(processor.get_piece_size())]
    n = len(vocab)
    full = {"added_tokens": [token(0, "<pad>"), token(1, "</s>"), token(n, "<tok>", lstrip=True, rstrip=True, single_word=True), token(n + 1, "y", normalized=True)],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                                                               {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Prepend", "prepend": ""}]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                                                                    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]},
            "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}]},
            "model": {"type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": True}}
    small = {"added_tokens": [token(1, "</s>")], "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["</s>", 0], ["▁a", -1.5], ["<0x41>", 0]]}}
    mapped = small | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": character_map()}}
    return [json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode() for tree in (full, small, mapped)]


def write(path, data):
    os.makedirs(os.path.dirname(f"{SEEDS}/{path}"), exist_ok=True)
    with open(f"{SEEDS}/{path}", "wb") as file:
        file.write(data)


def main():
    model = spiece()
    full, small, mapped = trees(model)
    write("tokenizer/json", b"\0" + full)
    write("tokenizer/small", b"\0" + small)
    write("tokenizer/map", b"\0" + mapped)
    write("tokenizer/spiece", b"\1" + model)
    write("tokenizer/both", b"\2" + struct.pack("<I", len(full)) + full + model)
    for i, text in enumerate(CLEAN):
        write(f"clean/{i}", text.encode())


main()
