# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fixtures/vae: what diffusers' AutoencoderKLWan computes with tiny random weights of odd sizes, encoder and decoder.

    python tests/reference/vae.py tests/fixtures/vae            # all cases, and the bf16 error of the bundled model
    (torch 2.11, diffusers 0.42; CPU, float32)

Weights and inputs are not stored: both sides make them from a hash of the tensor's name and the element's place (function `values`), so a
file holds the outputs alone. Metadata of a file: "config" (numbers, see `config_text`), "weights" (name:dtype:extents; …), and the
relative L2 error of diffusers' own bf16 run against its float32 run ("bf16_decode", "bf16_mean")."""
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKLWan
from safetensors.torch import load_file, save_file

# name: (base_dim, decoder_base_dim, dim_mult, n_res, temporal, z, weight dtype, latent h, w, latent frames, pixel h, w)
CASES = {
    "wan21_3x5": (8, None, [1, 2, 4, 4], 2, [False, True, True], 16, "F32", 3, 5, 2, 27, 43),
    "wan21_1x1": (8, None, [1, 2, 4, 4], 2, [False, True, True], 16, "F32", 1, 1, 1, 8, 8),
    "deep_1x1": (12, None, [1, 1, 2], 1, [True, True], 4, "F16", 1, 1, 5, 5, 7),
    "wide_2x3": (16, None, [1, 2, 2, 1], 1, [True, False, True], 5, "F32", 2, 3, 3, 17, 24),
    "two_levels": (8, 6, [2, 1], 3, [True], 3, "BF16", 5, 3, 3, 11, 6),
    "still": (12, None, [1, 2, 2], 1, [False, False], 4, "F32", 4, 3, 2, 13, 15),
}


def values(name: str, shape) -> np.ndarray:
    """float32 in [-1, 1): 24 bits of a mixed 32-bit counter; the name's CRC-32 is the seed."""
    n = int(np.prod(shape))
    x = (np.arange(n, dtype=np.uint64) * 0x9E3779B1 + zlib.crc32(name.encode())).astype(np.uint32)
    with np.errstate(over="ignore"):
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x85EBCA6B)
        x ^= x >> np.uint32(13)
        x *= np.uint32(0xC2B2AE35)
        x ^= x >> np.uint32(16)
    return ((x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1.0)).reshape(shape)


def weight(name: str, shape) -> np.ndarray:
    """Kernels keep the variance (uniform of width sqrt(3 / fan-in)); norms lie in 0.75 to 1.25, biases in ±0.1."""
    v = values(name, shape)
    if name.endswith("gamma"):
        return v * np.float32(0.25) + np.float32(1.0)
    if name.endswith("bias"):
        return v * np.float32(0.1)
    return v * np.sqrt(np.float32(3.0) / np.float32(int(np.prod(shape[1:]))))


def build(base, decoder_base, mult, n_res, temporal, z, dtype):
    mean = [float(m) for m in values("latents_mean", (z,))]
    std = [float(s) for s in values("latents_std", (z,)) + np.float32(2.0)]
    vae = AutoencoderKLWan(base_dim=base, decoder_base_dim=decoder_base, z_dim=z, dim_mult=mult, num_res_blocks=n_res,
                           temperal_downsample=temporal, latents_mean=mean, latents_std=std).eval()
    cast = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype]
    state, listing = {}, []
    for name, tensor in sorted(vae.state_dict().items()):
        v = torch.from_numpy(weight(name, tuple(tensor.shape)))
        state[name] = (v if tensor.dim() < 2 or name.endswith("gamma") else v.to(cast)).float()
        kind = "F32" if tensor.dim() < 2 or name.endswith("gamma") else dtype
        listing.append(f"{name}:{kind}:{','.join(str(e) for e in tensor.shape)};")
    vae.load_state_dict(state)
    return vae, "".join(listing), mean, std


def raw_decode(vae, z):
    """Decoding before the clamp: the loop of AutoencoderKLWan._decode."""
    vae.clear_cache()
    x, out = vae.post_quant_conv(z), []
    for i in range(z.shape[2]):
        vae._conv_idx = [0]
        out.append(vae.decoder(x[:, :, i:i + 1], feat_cache=vae._feat_map, feat_idx=vae._conv_idx, first_chunk=i == 0))
    vae.clear_cache()
    return torch.cat(out, 2)


def whole_decode(vae, z):
    """The same without caches: every convolution over the whole clip; time convolutions over all frames but the first."""
    decoder = vae.decoder
    x = decoder.mid_block(decoder.conv_in(vae.post_quant_conv(z)))
    for block in decoder.up_blocks:
        for resnet in block.resnets:
            x = resnet(x)
        for up in block.upsamplers or []:
            if up.mode == "upsample3d":
                later = up.time_conv(x[:, :, 1:]) if x.shape[2] > 1 else x[:, :, 1:].repeat(1, 2, 1, 1, 1)
                b, c, t, h, w = later.shape
                later = later.reshape(b, 2, c // 2, t, h, w).permute(0, 2, 3, 1, 4, 5).reshape(b, c // 2, 2 * t, h, w)
                x = torch.cat([x[:, :, :1], later], 2)
            t = x.shape[2]
            flat = up.resample(x.permute(0, 2, 1, 3, 4).flatten(0, 1))
            x = flat.unflatten(0, (1, t)).permute(0, 2, 1, 3, 4)
    return decoder.conv_out(torch.nn.functional.silu(decoder.norm_out(x)))


def denormalise(latents, mean, std):
    m = torch.tensor(mean).view(1, -1, 1, 1, 1)
    s = 1.0 / torch.tensor(std).view(1, -1, 1, 1, 1)
    return latents / s + m


def error(a, b):
    return float((a.double() - b.double()).norm() / b.double().norm())


def config_text(base, decoder_base, mult, n_res, temporal, z, latent, frames):
    return (f"base_dim {base} decoder_base_dim {decoder_base or base} z_dim {z} n_res_block {n_res} n_stage {len(mult)} "
            f"mult {' '.join(str(m) for m in mult)} temporal {' '.join(str(int(t)) for t in temporal)} "
            f"latent {' '.join(str(e) for e in latent)} pixels {' '.join(str(e) for e in frames)} ")


@torch.no_grad()
def make(path, base, decoder_base, mult, n_res, temporal, z, dtype, lat_h, lat_w, lat_t, px_h, px_w):
    vae, listing, mean, std = build(base, decoder_base, mult, n_res, temporal, z, dtype)
    factor = 2 ** sum(temporal)
    n_frame = 1 + factor * (lat_t - 1)
    latents = torch.from_numpy(values("latents", (1, z, lat_t, lat_h, lat_w)) * np.float32(2.0))
    pixels = torch.from_numpy(values("pixels", (n_frame, px_h, px_w, 3))).permute(3, 0, 1, 2)[None].contiguous()
    raw = denormalise(latents, mean, std)
    frames = raw_decode(vae, raw)
    assert error(whole_decode(vae, raw), frames) < 2e-6
    # AutoencoderKLWan.encode cuts the frames into 1 + 4 + 4 …; with another temporal factor that drops or merges none only if they divide
    moments = whole_encode(vae, pixels, factor)
    meta = {"config": config_text(base, decoder_base, mult, n_res, temporal, z, (lat_t, lat_h, lat_w), (n_frame, px_h, px_w)), "weights": listing}
    half = vae.to(torch.bfloat16)
    frames_half = raw_decode(half, raw.to(torch.bfloat16)).float()
    moments_half = whole_encode(half, pixels.to(torch.bfloat16), factor).float()
    meta["bf16_decode"] = repr(error(frames_half, frames))
    meta["bf16_mean"] = repr(error(moments_half[:, :z], moments[:, :z]))
    tensors = {
        "frames": frames[0].permute(1, 2, 3, 0).contiguous(),
        "mean": moments[0, :z].contiguous(),
        "logvar": moments[0, z:].clamp(-30.0, 20.0).contiguous(),
    }
    save_file(tensors, path, metadata=meta)
    print(path, {k: tuple(v.shape) for k, v in tensors.items()}, meta["bf16_decode"], meta["bf16_mean"], Path(path).stat().st_size)


def whole_encode(vae, pixels, factor):
    """AutoencoderKLWan._encode with chunks of the temporal factor instead of 4 (equal to it where the factor is 4)."""
    vae.clear_cache()
    out = []
    n_frame = pixels.shape[2]
    bounds = [0, 1] + list(range(1 + factor, n_frame + 1, factor))
    for begin, end in zip(bounds, bounds[1:]):
        vae._enc_conv_idx = [0]
        out.append(vae.encoder(pixels[:, :, begin:end], feat_cache=vae._enc_feat_map, feat_idx=vae._enc_conv_idx))
    vae.clear_cache()
    result = vae.quant_conv(torch.cat(out, 2))
    if factor == 4:
        assert torch.equal(result, vae._encode(pixels))
    return result


@torch.no_grad()
def bundled(root, out):
    """diffusers' bf16 error on the recorded clip of the bundled model (mean → first and last frame, clip → mean)."""
    recorded = load_file(root / "tests/fixtures/wan-tiny-t2v/vae.safetensors")
    vae = AutoencoderKLWan.from_pretrained(root / "models/wan-tiny-t2v/vae", torch_dtype=torch.bfloat16).eval()
    frames = raw_decode(vae, recorded["mean"][None].to(torch.bfloat16))[0].float()
    both = torch.stack([frames[:, 0], frames[:, 16]])
    wanted = torch.stack([recorded["decoded_frame_0"], recorded["decoded_frame_16"]])
    pixels = (recorded["clip_uint8"].float() / 127.5 - 1.0).permute(3, 0, 1, 2)[None].to(torch.bfloat16)
    mean = vae._encode(pixels)[0, :16].float()
    text = f"bf16_decode {error(both, wanted):.6e}\nbf16_mean {error(mean, recorded['mean']):.6e}\n"
    (out / "wan-tiny-t2v.bf16.txt").write_text(text)
    print(text)


if __name__ == "__main__":
    torch.set_num_threads(2)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case, sizes in CASES.items():
        make(str(folder / f"{case}.safetensors"), *sizes)
    bundled(Path(__file__).resolve().parents[2], folder)
