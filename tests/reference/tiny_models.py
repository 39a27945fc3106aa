# SPDX-License-Identifier: Apache-2.0
"""Writes a small model with random weights in the diffusers layout, for comparing reel with diffusers at sizes that no released model has.

    python tests/reference/tiny_models.py OUT [--heads 3] [--head-dim 64] [--layers 2] [--ffn 136] [--no-cross-attn-norm] [--experts 2]
        [--dtype bf16] [--vae-dtype fp16] [--text-dtype bf16] [--vae-base 8] [--text-width 96] [--text-heads 3] [--text-layers 2] [--text-ffn 160]
        [--z-dim 16] [--in-channels N] [--image-dim N] [--shard-size 200KB] [--seed 0] [--boundary-ratio 0.875] [--scheduler unipc] [--flow-shift 5]
        [--tokenizer models/wan-tiny-t2v/tokenizer]

OUT becomes a folder with model_index.json, transformer (and transformer_2), text_encoder, vae, scheduler and tokenizer; it must not exist. The classes
of diffusers 0.42.1 and transformers 5.24 make and save everything. Weights, norms and biases are drawn so that each of them shows in the result
(biases and norms are not left at 0 and 1). Same arguments, same bytes. Needs torch 2.11.
"""
import argparse
import json
import pathlib
import shutil
import sys

import torch
from diffusers import (AutoencoderKLWan, DPMSolverMultistepScheduler, FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler,
                       WanTransformer3DModel)
from transformers import UMT5Config, UMT5EncoderModel

DTYPES = {"fp32": torch.float32, "f32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
VOCAB = 949  # of the bundled tokenizer


def randomize(module, generator):
    """Matrices ~ N(0, 1/fan_in), norms around 1, biases and tables ~ N(0, 0.1²), embedding rows ~ N(0, 1)."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            x = torch.randn(p.shape, generator=generator)
            is_norm = "gamma" in name or ("norm" in name and name.endswith("weight"))
            if is_norm:
                x = 1 + 0.1 * x
            elif "shared" in name or "embed_tokens" in name:
                pass
            elif p.dim() >= 2 and "table" not in name and "relative_attention_bias" not in name:
                x = x * (p[0].numel() ** -0.5)
            else:
                x = 0.1 * x
            p.copy_(x)


def keeps_f32(name):
    """What diffusers' WanTransformer3DModel keeps in fp32 when it is loaded in 16 bits, and so what real checkpoints may hold."""
    return any(part in name for part in ("time_embedder", "scale_shift_table", "norm1", "norm2", "norm3"))


def cast(module, dtype, is_mixed):
    for name, p in module.named_parameters():
        if not (is_mixed and keeps_f32(name)):
            p.data = p.data.to(dtype)
    return module


def transformer(a, seed):
    extra = {}
    if a.image_dim:
        extra = {"image_dim": a.image_dim, "added_kv_proj_dim": a.heads * a.head_dim, "pos_embed_seq_len": a.pos_embed_len}
    dit = WanTransformer3DModel(num_attention_heads=a.heads, attention_head_dim=a.head_dim, num_layers=a.layers, ffn_dim=a.ffn, text_dim=a.text_width,
                                in_channels=a.in_channels or a.z_dim, out_channels=a.z_dim, cross_attn_norm=not a.no_cross_attn_norm, **extra)
    randomize(dit, torch.Generator().manual_seed(seed))
    return cast(dit, DTYPES[a.dtype], not a.all_one_dtype)


def text_encoder(a, seed):
    config = UMT5Config(vocab_size=a.vocab, d_model=a.text_width, d_kv=a.text_head_dim, num_heads=a.text_heads, num_layers=a.text_layers, d_ff=a.text_ffn,
                        feed_forward_proj="gated-gelu", tie_word_embeddings=True)
    umt5 = UMT5EncoderModel(config)
    randomize(umt5, torch.Generator().manual_seed(seed))
    return umt5.to(DTYPES[a.text_dtype])


def vae(a, seed):
    g = torch.Generator().manual_seed(seed)
    stats = {"latents_mean": [round(x, 4) for x in torch.randn(a.z_dim, generator=g).tolist()],
             "latents_std": [round(1 + abs(x), 4) for x in torch.randn(a.z_dim, generator=g).tolist()]}
    model = AutoencoderKLWan(base_dim=a.vae_base, z_dim=a.z_dim, **stats)
    randomize(model, g)
    return model.to(DTYPES[a.vae_dtype])


def scheduler(a):
    flow = {"prediction_type": "flow_prediction", "use_flow_sigmas": True, "flow_shift": a.flow_shift}
    return {"unipc": lambda: UniPCMultistepScheduler(**flow), "dpmpp": lambda: DPMSolverMultistepScheduler(**flow),
            "euler": lambda: FlowMatchEulerDiscreteScheduler(shift=a.flow_shift)}[a.scheduler]()


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", type=pathlib.Path)
    for name, value in (("heads", 3), ("head-dim", 64), ("layers", 2), ("ffn", 136), ("experts", 1), ("vae-base", 8), ("z-dim", 16), ("in-channels", 0),
                        ("image-dim", 0), ("pos-embed-len", None), ("text-width", 96), ("text-heads", 3), ("text-head-dim", 64), ("text-layers", 2),
                        ("text-ffn", 160), ("vocab", VOCAB), ("seed", 0)):
        p.add_argument("--" + name, type=int, default=value)
    for name in ("dtype", "vae-dtype", "text-dtype"):
        p.add_argument("--" + name, choices=DTYPES, default="fp32")
    p.add_argument("--no-cross-attn-norm", action="store_true")
    p.add_argument("--all-one-dtype", action="store_true", help="norms and tables of the transformer too in --dtype")
    p.add_argument("--boundary-ratio", type=float, default=0.875, help="with --experts 2")
    p.add_argument("--scheduler", choices=("unipc", "euler", "dpmpp"), default="unipc")
    p.add_argument("--flow-shift", type=float, default=5.0)
    p.add_argument("--shard-size", default="100GB", help="largest shard, e.g. 200KB: components beyond it are sharded, with an index")
    p.add_argument("--tokenizer", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "models/wan-tiny-t2v/tokenizer")
    return p.parse_args()


def main():
    a = arguments()
    if a.out.exists():
        sys.exit(f"{a.out} exists; name a folder that does not")
    parts = {"transformer": transformer(a, 10 * a.seed + 1), "transformer_2": transformer(a, 10 * a.seed + 2) if a.experts == 2 else None,
             "text_encoder": text_encoder(a, 10 * a.seed + 3), "vae": vae(a, 10 * a.seed + 4)}
    for name, part in parts.items():
        if part is not None:
            part.save_pretrained(a.out / name, max_shard_size=a.shard_size)
    steps = scheduler(a)
    steps.save_pretrained(a.out / "scheduler")
    shutil.copytree(a.tokenizer, a.out / "tokenizer", copy_function=shutil.copyfile)
    config = {"_class_name": "WanPipeline", "boundary_ratio": a.boundary_ratio if a.experts == 2 else None, "expand_timesteps": False,
              "scheduler": ["diffusers", type(steps).__name__], "text_encoder": ["transformers", "UMT5EncoderModel"],
              "tokenizer": ["transformers", "T5TokenizerFast"], "vae": ["diffusers", "AutoencoderKLWan"]}
    for name in ("transformer", "transformer_2"):
        config[name] = ["diffusers", "WanTransformer3DModel"] if parts[name] is not None else [None, None]
    (a.out / "model_index.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
