# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fuzz/seeds/safetensors and tests/fuzz/seeds/config: small good files for the fuzz targets to start from.

    python tests/reference/file_seeds.py models/wan-tiny-t2v tests/fuzz/seeds

Needs nothing beyond Python. The configs are those of the given model, and of it with other schedulers and without a second expert.
"""
import json
import pathlib
import struct
import sys

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1}


def tensors(*shapes):
    header, at = {}, 0
    for name, dtype, shape in shapes:
        n = SIZES[dtype]
        for x in shape:
            n *= x
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    return header, bytes(i % 251 for i in range(at))


def safetensors(header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main(model, out):
    files = {"empty": safetensors({}, b""), "one": safetensors(*tensors(("a", "F32", [2, 1]))),
             "all": safetensors(*tensors(*((d.lower(), d, [1, 2]) for d in SIZES))),
             "odd": safetensors(*tensors(("scalar", "BF16", []), ("none", "F16", [0, 3]), ("\u7ea2\n", "U8", [1, 1, 1, 1, 1, 3])))}
    header, data = tensors(("b", "U8", [3]), ("a", "U8", [2]))
    files["metadata"] = safetensors({"__metadata__": {"format": "pt", "x": ""}, **header}, data)
    parts = {"index": "model_index.json", "text": "text_encoder/config.json", "dit": "transformer/config.json", "dit_2": "transformer_2/config.json",
             "vae": "vae/config.json", "scheduler": "scheduler/scheduler_config.json"}
    two = {key: json.loads((model / name).read_text()) for key, name in parts.items()}
    one = {**two, "scheduler": {"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0}, "index": {**two["index"], "transformer_2": [None, None]}}
    del one["dit_2"]
    image = {**one, "dit": {**one["dit"], "in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 256, "pos_embed_seq_len": 514},
             "scheduler": {"_class_name": "DPMSolverMultistepScheduler", "use_flow_sigmas": True, "prediction_type": "flow_prediction"}}
    configs = {"two_experts": two, "one_expert": one, "image": image}
    for folder, made in (("safetensors", files), ("config", {k: json.dumps(v).encode() for k, v in configs.items()})):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name, content in made.items():
            (out / folder / name).write_bytes(content)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
