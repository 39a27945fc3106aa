#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what every stage of the bundled model computes in diffusers, in float32, for the tests of the engine.

    python3 tools/tiny-model/reference.py models/wan-tiny-t2v RECORDINGS
    python3 tests/reference/recordings.py RECORDINGS tests/fixtures/wan-tiny-t2v

Needs PyTorch, diffusers, transformers, sentencepiece, safetensors and NumPy. Runs on the CPU; the noise is that of PyTorch's CPU generator.
"""
import argparse
import json
import pathlib

import numpy as np
import torch

import render
import world

CASES = [
    dict(prompt="A red circle moves from left to right on a white background.", negative="", guidance=4.0),
    dict(prompt="a large blue star moving up on a black background", negative="low quality, blurry, static", guidance=4.0),
    dict(prompt="一个绿色的三角形向左移动,浅蓝色背景。", negative="", guidance=3.0),
]
STEPS, SEED = 8, 42
ODD = ["", "a", "  two   spaces ", "A red circle moves right.", "一个红色的圆形向右移动,白色背景。", "🟢 ball → 右", "naïve café Ⅷ ﬁ",
       "tab\tand\nnewline", "色调艳丽,过曝,静态,细节模糊不清,字幕", "Ünïcödé ẞ ﷺ 𝕏 👩‍🚀", "x" * 40, "100% done; (ok?) [no] {yes} <pad> </s>",
       "ＦＵＬＬ　ｗｉｄｔｈ", "a\u00a0b\u200bc", "▁under▁bar", "Привет, мир", "مرحبا", "\u0001control\u007f"]


@torch.no_grad()
def decode_unclamped(vae, z):
    """AutoencoderKLWan._decode without its last clamp."""
    vae.clear_cache()
    x = vae.post_quant_conv(z)
    out = []
    for i in range(z.shape[2]):
        vae._conv_idx = [0]
        out.append(vae.decoder(x[:, :, i:i + 1], feat_cache=vae._feat_map, feat_idx=vae._conv_idx, first_chunk=i == 0))
    vae.clear_cache()
    return torch.cat(out, 2)


def record_text(pipe, key, text, out):
    t = pipe.tokenizer([text], padding="max_length", max_length=512, truncation=True, add_special_tokens=True, return_attention_mask=True,
                       return_tensors="pt")
    out[key + "_ids"], out[key + "_mask"] = t.input_ids[0].int(), t.attention_mask[0].int()
    out[key + "_states"] = pipe.text_encoder(t.input_ids, t.attention_mask).last_hidden_state[0, :int(t.attention_mask.sum())]


def watch(pipe, calls, inner):
    """Hooks that keep every call of both transformers, and (if inner is a dict) what stands inside the first one's first call."""
    hooks = []
    for name in ("transformer", "transformer_2"):
        hooks.append(getattr(pipe, name).register_forward_hook(lambda m, args, y, name=name: calls.append((name, y[0].clone()))))
    if inner is None:
        return hooks
    t = pipe.transformer
    places = {"patch_embedding": t.patch_embedding, "time_embedding": t.condition_embedder.time_embedder, "time_projection": t.condition_embedder.time_proj,
              "text_projection": t.condition_embedder.text_embedder, "block_0_self_attention": t.blocks[0].attn1,
              "block_0_cross_attention": t.blocks[0].attn2, "block_0_ffn": t.blocks[0].ffn}
    places.update({f"block_{i}": b for i, b in enumerate(t.blocks)})
    for key, module in places.items():
        def keep(m, args, y, key=key):
            if key not in inner:
                inner[key] = (y[0] if isinstance(y, tuple) else y).clone()
        hooks.append(module.register_forward_hook(keep))
    return hooks


def sample(pipe, case, kind, **more):
    return pipe(prompt=case["prompt"], negative_prompt=case["negative"], height=128, width=128, num_frames=17, num_inference_steps=STEPS,
                guidance_scale=case["guidance"], generator=torch.Generator("cpu").manual_seed(SEED), output_type=kind, **more).frames


@torch.no_grad()
def record(pipe, case, blocks):
    """One prompt through WanPipeline with hooks on the way."""
    out, calls, inner, latents = {}, [], {} if blocks else None, []
    record_text(pipe, "prompt", case["prompt"], out)
    record_text(pipe, "negative", case["negative"], out)
    c = pipe.vae.config
    out["noise"] = torch.randn(1, c.z_dim, 5, 16, 16, generator=torch.Generator("cpu").manual_seed(SEED))[0]

    def on_step(p, i, t, kw):
        latents.append(kw["latents"].clone())
        return {}

    hooks = watch(pipe, calls, inner)
    final = sample(pipe, case, "latent", callback_on_step_end=on_step)
    for h in hooks:
        h.remove()
    out["timesteps"], out["sigmas"] = pipe.scheduler.timesteps.int(), pipe.scheduler.sigmas.float()
    low = next(i for i, call in enumerate(calls) if call[0] == "transformer_2")
    out["first_low_step"] = torch.tensor([low // 2], dtype=torch.int32)
    for name, at in (("first", 0), ("low", low)):
        out[f"velocity_{name}_cond"], out[f"velocity_{name}_uncond"] = calls[at][1][0], calls[at + 1][1][0]
    out["latents"] = torch.stack([x[0] for x in latents])
    for k, v in (inner or {}).items():
        out["inner_" + k] = v[0][:40] if k == "text_projection" else v[0]
    out["latents_final"] = final[0]
    z = final * torch.tensor(c.latents_std).view(1, -1, 1, 1, 1) + torch.tensor(c.latents_mean).view(1, -1, 1, 1, 1)
    frames = decode_unclamped(pipe.vae, z)[0]
    if blocks:
        out["frames_float"] = frames[:, :5]
    out["frames_uint8"] = ((frames / 2 + 0.5).clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 3, 0)
    off = np.round(np.asarray(sample(pipe, case, "np")[0]) * 255).astype(int) - out["frames_uint8"].numpy().astype(int)
    print(case["prompt"], "| largest difference from WanPipeline's own frames:", int(np.abs(off).max()))
    return out


@torch.no_grad()
def record_vae(vae):
    clip = torch.from_numpy(render.to_uint8(render.draw(world.sample_scene(np.random.default_rng(8), two=1.0))))
    d = vae.encode(clip.float().permute(3, 0, 1, 2)[None] / 127.5 - 1).latent_dist
    decoded = decode_unclamped(vae, d.mean)[0]
    return dict(clip_uint8=clip, mean=d.mean[0], logvar=d.logvar[0], decoded_frame_0=decoded[:, 0], decoded_frame_16=decoded[:, 16])


def record_schedules(config):
    from diffusers import UniPCMultistepScheduler
    out = {}
    for steps in (4, 8, 20, 25, 50):
        for shift in (3.0, 5.0, 12.0):
            s = UniPCMultistepScheduler.from_config(config, flow_shift=shift)
            s.set_timesteps(steps)
            out[f"timesteps_{steps}_shift_{shift:g}"], out[f"sigmas_{steps}_shift_{shift:g}"] = s.timesteps.int(), s.sigmas.float()
    return out


def record_tokens(spiece):
    import sentencepiece as spm
    sp = spm.SentencePieceProcessor(model_file=str(spiece))
    rng = np.random.default_rng(3)
    texts = list(ODD) + [world.NEGATIVE_EN, world.NEGATIVE_ZH] + world.negatives(rng, 4)
    for _ in range(40):
        texts += world.captions(rng, world.sample_scene(rng), 1, zh=0.3)
    return [dict(text=t, ids=sp.encode(t) + [1]) for t in texts]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    a = p.parse_args()
    from diffusers import WanPipeline
    from safetensors.torch import save_file
    a.out.mkdir(parents=True, exist_ok=True)
    pipe = WanPipeline.from_pretrained(a.model, torch_dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    listing, clips = {}, []

    def put(name, tensors):
        tensors = {k: v.contiguous() for k, v in tensors.items()}
        save_file(tensors, a.out / name, metadata={"format": "pt"})
        listing[name] = {k: [str(v.dtype).replace("torch.", ""), list(v.shape)] for k, v in tensors.items()}

    for i, case in enumerate(CASES):
        out = record(pipe, case, blocks=i == 0)
        put(f"prompt_{i}.safetensors", out)
        clips.append(out["frames_uint8"].numpy())
    put("vae.safetensors", record_vae(pipe.vae))
    put("schedules.safetensors", record_schedules(pipe.scheduler.config))
    tokens = record_tokens(a.model / "tokenizer" / "spiece.model")
    (a.out / "tokens.json").write_text(json.dumps(tokens, ensure_ascii=False, indent=0), encoding="utf-8")
    cases = [dict(c, steps=STEPS, seed=SEED, flow_shift=pipe.scheduler.config.flow_shift) for c in CASES]
    (a.out / "listing.json").write_text(json.dumps(dict(cases=cases, tensors=listing), ensure_ascii=False, indent=1), encoding="utf-8")
    render.write_png(a.out / "reference_sheet.png", render.sheet(np.stack(clips)))


if __name__ == "__main__":
    main()
