# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fixtures/stages: what diffusers' WanTransformer3DModel and transformers' UMT5EncoderModel compute with tiny random weights of odd
sizes, and how far their own bf16 runs are off.

    python tests/reference/stages.py tests/fixtures/stages      # all cases, and the bf16 errors of the bundled model
    (torch 2.11, diffusers 0.42, transformers 5.24; CPU)

Weights and inputs are not stored: both sides make them from a hash of the tensor's name and the element's place (function `values`), so a file
holds the outputs alone, one row of `out` per text length. Metadata: "config" (words and numbers), "weights" (name:dtype:extents;...), and "bf16", the
relative L2 error of the same checkpoint loaded with torch_dtype=bfloat16 (parts that the libraries keep in float32 stay so) against the float32 run."""
import gc
import json
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import load_file, save_file
from transformers import UMT5Config, UMT5EncoderModel

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

# name: heads, head width, layers, ffn, channels in, out, text width, sinusoid, norm of cross attention, stored dtype, (T, h, w), text lengths, padded to, timestep
DIT = {
    "dit_lengths": (1, 64, 1, 96, 4, 4, 24, 32, True, "F32", (1, 2, 6), list(range(1, 21)), 512, 999),
    "dit_2x128": (2, 128, 2, 300, 16, 16, 48, 256, False, "BF16", (2, 6, 10), [7], 512, 500),
    "dit_3x40": (3, 40, 3, 77, 5, 3, 20, 64, True, "F16", (3, 10, 6), [1, 20], 512, 37),
    "dit_4x64": (4, 64, 2, 201, 16, 8, 36, 128, False, "F16", (3, 14, 6), [512], 512, 958.5),
    "dit_5x128": (5, 128, 1, 513, 3, 4, 40, 256, True, "F32", (1, 22, 18), [3, 64], 64, 731.25),
    "dit_5x64": (5, 64, 3, 160, 7, 2, 28, 96, True, "BF16", (2, 18, 26), [12], 226, 1),
    "dit_1x128": (1, 128, 3, 64, 4, 5, 16, 256, False, "F32", (3, 6, 2), [2, 19], 33, 999),
    "dit_4x128": (4, 128, 1, 260, 4, 4, 32, 256, True, "F16", (3, 4, 34), [16], 512, 250),
}
# name: width, head width, heads, ffn, layers, vocabulary, buckets, farthest, stored dtype, text lengths, padded to
UMT5 = {
    "umt5_lengths": (18, 64, 1, 80, 1, 53, 32, 128, "F32", list(range(1, 21)), 512),
    "umt5_full": (10, 64, 5, 52, 2, 300, 32, 128, "F16", [512], 512),
    "umt5_3x128": (40, 128, 3, 70, 3, 97, 32, 128, "BF16", [2, 97], 226),
    "umt5_2x40": (24, 40, 2, 33, 2, 77, 16, 40, "F32", [33, 64], 64),
    "umt5_4x64": (48, 64, 4, 120, 3, 61, 32, 128, "F16", [5, 41], 512),
}


def values(name: str, shape) -> np.ndarray:
    """float32 in [-1, 1): 24 bits of a mixed 32-bit counter; the name's CRC-32 is the seed."""
    n, step, seed = int(np.prod(shape)), 1 << 22, np.uint32(zlib.crc32(name.encode()))
    out = np.empty(n, np.float32)
    with np.errstate(over="ignore"):
        for begin in range(0, n, step):
            x = np.arange(begin, min(n, begin + step), dtype=np.uint32) * np.uint32(0x9E3779B1) + seed
            x ^= x >> np.uint32(16)
            x *= np.uint32(0x85EBCA6B)
            x ^= x >> np.uint32(13)
            x *= np.uint32(0xC2B2AE35)
            x ^= x >> np.uint32(16)
            out[begin:begin + step] = (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1.0)
    return out.reshape(shape)


def weight(name: str, shape) -> np.ndarray:
    """Matrices keep the variance (uniform of width sqrt(3 / fan-in)); umT5 does not scale its scores, so its queries are smaller."""
    v = values(name, shape)
    if "norm" in name and name.endswith(".weight"):
        return v * np.float32(0.25) + np.float32(1.0)
    if name.endswith(".bias"):
        return v * np.float32(0.1)
    if name.endswith("scale_shift_table"):
        return v * np.float32(0.5)
    if name.endswith("relative_attention_bias.weight"):
        return v * np.float32(2.0)
    if name == "shared.weight":
        return v
    scale = np.sqrt(np.float32(3.0) / np.float32(int(np.prod(shape[1:]))))
    return v * (scale * np.float32(0.25) if name.endswith("SelfAttention.q.weight") else scale)


def ids(n: int, vocabulary: int) -> list[int]:
    """n - 1 hashed ids and </s>."""
    v = ((values("ids", (n,)).astype(np.float64) + 1.0) * 0.5 * vocabulary).astype(np.int64)
    v[-1] = 1
    return v.tolist()


def error(a, b):
    return float((a.double() - b.double()).norm() / b.double().norm())


def checkpoint(folder: Path, file: str, model, config: dict, dtype: str) -> str:
    """Writes weights and config as a checkpoint; returns the listing."""
    state, listing = {}, []
    for name, tensor in sorted(model.state_dict().items()):
        if name == "encoder.embed_tokens.weight":  # the same tensor as shared.weight
            continue
        state[name] = torch.from_numpy(weight(name, tuple(tensor.shape))).to(DTYPES[dtype])
        listing.append(f"{name}:{dtype}:{','.join(str(e) for e in tensor.shape)};")
    save_file(state, folder / file, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    return "".join(listing)


def dit_run(model, case, dtype):
    heads, width, layers, ffn, c_in, c_out, text, freq, norm, stored, size, lengths, padded, timestep = case
    x = torch.from_numpy(values("latents", (1, c_in, *size)) * np.float32(2.0)).to(dtype)
    out = []
    for n in lengths:
        states = torch.zeros(1, padded, text)
        states[0, :n] = torch.from_numpy(values("states", (n, text)))
        out.append(model(x, torch.tensor([timestep]), states.to(dtype), return_dict=False)[0][0].float())
    return torch.stack(out)


def umt5_run(model, case, dtype):
    width, head, heads, ffn, layers, vocabulary, buckets, far, stored, lengths, padded = case
    out = []
    for n in lengths:
        padded_ids = torch.tensor([ids(n, vocabulary) + [0] * (padded - n)])
        mask = torch.tensor([[1] * n + [0] * (padded - n)])
        out.append(model(padded_ids, mask).last_hidden_state[0, :n].float())
    return torch.cat(out)


def dit_config(case):
    heads, width, layers, ffn, c_in, c_out, text, freq, norm, *_ = case
    return dict(num_attention_heads=heads, attention_head_dim=width, num_layers=layers, ffn_dim=ffn, in_channels=c_in, out_channels=c_out,
                text_dim=text, freq_dim=freq, cross_attn_norm=norm)


def umt5_config(case):
    width, head, heads, ffn, layers, vocabulary, buckets, far, *_ = case
    return UMT5Config(d_model=width, d_kv=head, num_heads=heads, d_ff=ffn, num_layers=layers, vocab_size=vocabulary, relative_attention_num_buckets=buckets,
                      relative_attention_max_distance=far, dropout_rate=0.0, feed_forward_proj="gated-gelu", architectures=["UMT5EncoderModel"])


def words(keys, numbers):
    flat = [" ".join(str(int(v) if float(v).is_integer() else v) for v in (n if isinstance(n, (list, tuple)) else [n])) for n in numbers]
    return " ".join(f"{k} {v}" for k, v in zip(keys.split(), flat)) + " "


def write(path, out, metadata):
    """A safetensors file; save_file would put the metadata in another order every time."""
    header = json.dumps({"__metadata__": metadata, "out": {"dtype": "F32", "shape": list(out.shape), "data_offsets": [0, 4 * out.numel()]}}).encode()
    header += b" " * (-len(header) % 8)
    Path(path).write_bytes(len(header).to_bytes(8, "little") + header + out.numpy().tobytes())


@torch.no_grad()
def make(path, case, scratch=None):
    """Both families: a checkpoint on disk, loaded as a user does, in float32 and in bfloat16."""
    is_dit = len(case) == 14
    if is_dit:
        config, load, run, file = dit_config(case), WanTransformer3DModel, dit_run, "diffusion_pytorch_model.safetensors"
        with torch.device("meta"):
            model = load(**config)
        config = dict(model.config)
        config["_class_name"] = "WanTransformer3DModel"
        numbers = case[:9] + (case[10], len(case[11]), case[11], case[12], case[13])
        text = words("heads head_dim layers ffn in out text freq cross_norm size n_length lengths padded timestep", numbers)
    else:
        config, load, run, file = umt5_config(case), UMT5EncoderModel, umt5_run, "model.safetensors"
        with torch.device("meta"):
            model = load(config)
        config = config.to_dict()
        text = words("d_model d_kv heads ffn layers vocab buckets far n_length lengths padded", case[:8] + (len(case[9]), case[9], case[10]))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        listing = checkpoint(Path(folder), file, model, config, case[9] if is_dit else case[8])
        gc.collect()
        result = {}
        for dtype in (torch.float32, torch.bfloat16):
            loaded, info = load.from_pretrained(folder, torch_dtype=dtype, output_loading_info=True)
            assert not info["missing_keys"] and not info["unexpected_keys"], info
            result[dtype] = run(loaded.eval(), case, dtype)
            del loaded
            gc.collect()
    out = result[torch.float32].contiguous()
    bf16 = error(result[torch.bfloat16], out)
    write(path, out, {"config": text, "weights": listing, "bf16": repr(bf16)})
    print(f"{Path(path).name}: {tuple(out.shape)}, rms {float(out.square().mean().sqrt()):.3f}, bf16 {bf16:.3e}, {Path(path).stat().st_size} bytes", flush=True)


@torch.no_grad()
def bundled(root: Path, out: Path):
    """The libraries' bf16 errors on the recorded inputs of the bundled model."""
    model = root / "models/wan-tiny-t2v"
    dit = WanTransformer3DModel.from_pretrained(model / "transformer", torch_dtype=torch.bfloat16).eval()
    low = WanTransformer3DModel.from_pretrained(model / "transformer_2", torch_dtype=torch.bfloat16).eval()
    text = UMT5EncoderModel.from_pretrained(model / "text_encoder", torch_dtype=torch.bfloat16).eval()
    lines = []
    for p in range(3):
        r = load_file(root / f"tests/fixtures/wan-tiny-t2v/prompt_{p}.safetensors")
        for which, branch in (("prompt", "cond"), ("negative", "uncond")):
            real = r[f"{which}_states"]
            states = torch.zeros(1, 512, real.shape[1])
            states[0, :real.shape[0]] = real
            encoded = text(r[f"{which}_ids"].long()[None], r[f"{which}_mask"].long()[None]).last_hidden_state[0, :real.shape[0]].float()
            lines.append(f"prompt_{p} {which}_states {error(encoded, real):.6e}")
            velocity = dit(r["noise"][None].bfloat16(), r["timesteps"][:1], states.bfloat16(), return_dict=False)[0][0].float()
            lines.append(f"prompt_{p} velocity_first_{branch} {error(velocity, r[f'velocity_first_{branch}']):.6e}")
            if p == 0:
                step = int(r["first_low_step"][0])
                velocity = low(r["latents"][step - 1][None].bfloat16(), r["timesteps"][step:step + 1], states.bfloat16(), return_dict=False)[0][0].float()
                lines.append(f"prompt_{p} velocity_low_{branch} {error(velocity, r[f'velocity_low_{branch}']):.6e}")
    (out / "wan-tiny-t2v.bf16.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    torch.set_num_threads(2)
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name, sizes in (DIT | UMT5).items():
        make(target / f"{name}.safetensors", sizes)
    bundled(Path(__file__).resolve().parents[2], target)
