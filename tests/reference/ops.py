# SPDX-License-Identifier: Apache-2.0
"""Makes tests/fixtures/ops: inputs and outputs of PyTorch's, diffusers' and transformers' own modules, one group a C reference operation.

    python tests/reference/ops.py tests/fixtures/ops

Needs torch 2.11, diffusers 0.42.1, transformers 5 and safetensors. See the folder's README.md for what the tensors are. Modules run in f64 where
they allow it, on inputs that are exact in f32; results are stored as f32.
"""
import sys

import torch
import torch.nn.functional as F
from diffusers.models.autoencoders.autoencoder_kl_wan import WanCausalConv3d, WanResample, WanRMS_norm
from diffusers.models.normalization import FP32LayerNorm
from diffusers.models.transformers import transformer_wan
from diffusers.models.transformers.transformer_wan import WanAttention, WanRotaryPosEmbed, WanTransformer3DModel
from safetensors.torch import save_file
from transformers.models.umt5.modeling_umt5 import UMT5LayerNorm

OUT = {}
D = torch.float64


def put(**tensors):
    for name, t in tensors.items():
        t = t.detach()
        OUT[name] = (t.to(torch.float32) if t.dtype == D else t).contiguous()


def rand(*shape, scale=1.0, mean=0.0):
    """Normal numbers that are exact in f32, held as f64."""
    return (torch.randn(*shape, dtype=torch.float32) * scale + mean).to(D)


def last(t):
    """[1, C, T, H, W] to channels last [T, H, W, C]."""
    return t[0].permute(1, 2, 3, 0)


def weights(module):
    for p in module.parameters():
        p.data = rand(*p.shape) / 4
    return module.to(D)


def convolutions():
    conv = weights(WanCausalConv3d(5, 7, 3, padding=1).to(D))
    x = rand(1, 5, 4, 6, 5)
    put(conv_x=last(x), conv_w=conv.weight, conv_b=conv.bias, conv_y=last(conv(x)))
    # a second chunk of 3 frames after two cached ones, after one cached one
    put(conv_y_history2=last(conv(x[:, :, 2:], x[:, :, :2])), conv_y_history1=last(conv(x[:, :, 1:], x[:, :, :1])))
    up = weights(WanResample(6, "upsample2d").to(D))
    x = rand(1, 6, 2, 4, 3)
    # the nearest upsampling of diffusers goes through f32: exact for these inputs
    put(up_x=last(x), up_w=up.resample[1].weight, up_b=up.resample[1].bias, up_y=last(up(x)))
    down = weights(WanResample(4, "downsample3d").to(D))
    x = rand(1, 4, 5, 6, 8)
    cache = [None]
    first = down(x[:, :, :1], cache, [0])
    rest = down(x[:, :, 1:], cache, [0])
    put(down_x=last(x), down_w=down.resample[1].weight, down_b=down.resample[1].bias, down_time_w=down.time_conv.weight,
        down_time_b=down.time_conv.bias, down_y_first=last(first), down_y_rest=last(rest))


def attention():
    for name, heads, width, n_query, n_key in (("self", 2, 40, 19, 19), ("cross", 2, 64, 7, 21)):
        q, k, v = rand(2, n_query, heads, width), rand(2, n_key, heads, width), rand(2, n_key, heads, width)
        key_bias, relative = rand(n_key), rand(heads, n_query + n_key - 1)
        place = torch.arange(n_key)[None, :] - torch.arange(n_query)[:, None] + n_query - 1
        mask = relative[:, place] + key_bias[None, None, :]
        scale = 0.25
        qt, kt, vt = (t.transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(qt, kt, vt, attn_mask=mask[None].expand(2, -1, -1, -1), scale=scale).transpose(1, 2)
        lse = torch.logsumexp(scale * qt @ kt.transpose(2, 3) + mask, dim=3)
        plain = F.scaled_dot_product_attention(qt, kt, vt, scale=scale).transpose(1, 2)
        put(**{f"attention_{name}_{n}": t for n, t in dict(q=q, k=k, v=v, key_bias=key_bias, relative_bias=relative, out=out, lse=lse, plain=plain).items()})


def norms():
    x, scale, shift = rand(9, 31, scale=2.0, mean=1.5), rand(2, 31), rand(2, 31)
    index = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1], dtype=torch.int32)
    norm = FP32LayerNorm(31, eps=1e-6, elementwise_affine=False)
    affine = weights(FP32LayerNorm(31, eps=1e-6, elementwise_affine=True))
    rows = index.long()
    put(norm_x=x, norm_scale=scale, norm_shift=shift, norm_index=index, norm_modulated=norm(x) * (1 + scale[rows]) + shift[rows],
        norm_w=affine.weight, norm_b=affine.bias, norm_affine=F.layer_norm(x, (31,), affine.weight, affine.bias, 1e-6))
    t5 = UMT5LayerNorm(31, eps=1e-6)
    t5.weight.data = rand(31)
    put(t5_w=t5.weight, t5_y=t5(x))
    channel = WanRMS_norm(12, images=False)
    channel.gamma.data = rand(12, 1, 1, 1)
    x = rand(1, 12, 3, 4, 5)
    x[0, :, 1, 2, 3] = 0  # a pixel of zeros
    put(channel_x=last(x), channel_gamma=channel.gamma, channel_y=last(channel(x)), channel_silu=last(F.silu(channel(x))))


def rotation():
    """Queries as diffusers' processor hands them to attention, after projection (the identity), norm over heads and rotation."""
    heads, width, frames, height, columns = 3, 32, 2, 3, 4
    attn = WanAttention(dim=heads * width, heads=heads, dim_head=width, eps=1e-6, processor=transformer_wan.WanAttnProcessor())
    attn = weights(attn)
    for linear in (attn.to_q, attn.to_k, attn.to_v):
        linear.weight.data = torch.eye(heads * width, dtype=D)
        linear.bias.data.zero_()
    rope = WanRotaryPosEmbed(width, (1, 2, 2), 16)
    x = rand(1, frames * height * columns, heads * width)
    caught = {}
    real = transformer_wan.dispatch_attention_fn

    def catch(q, k, v, **_):
        caught.update(q=q, k=k)
        return v

    transformer_wan.dispatch_attention_fn = catch
    table = rope(torch.empty(1, 4, frames, 2 * height, 2 * columns))
    attn(x, rotary_emb=tuple(t.to(D) for t in table))
    transformer_wan.dispatch_attention_fn = real
    cos, sin = rope.freqs_cos, rope.freqs_sin
    pairs = torch.stack([cos[:, 0::2], sin[:, 1::2]], dim=2)
    put(rope_x=x[0], rope_wq=attn.norm_q.weight, rope_wk=attn.norm_k.weight, rope_q=caught["q"][0], rope_k=caught["k"][0], rope_table=pairs,
        rope_grid=torch.tensor([frames, height, columns, rope.t_dim // 2, rope.h_dim // 2], dtype=torch.int32))


def patches():
    """Around the blocks of a whole transformer: what patch_embedding makes of latents, and what becomes of proj_out's rows."""
    model = WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=1, attention_head_dim=16, in_channels=5, out_channels=3, text_dim=8,
                                  freq_dim=16, ffn_dim=16, num_layers=1, rope_max_seq_len=32)
    seen = {}
    model.patch_embedding.register_forward_hook(lambda m, i, o: seen.update(tokens=o.flatten(2).transpose(1, 2)))
    model.proj_out.register_forward_hook(lambda m, i, o: seen.update(rows=o))
    x = torch.randn(1, 5, 3, 4, 6)
    sample = model(x, torch.tensor([500]), torch.randn(1, 4, 8), return_dict=False)[0]
    put(patch_x=x[0], patch_w=model.patch_embedding.weight, patch_b=model.patch_embedding.bias, patch_tokens=seen["tokens"][0],
        unpatch_rows=seen["rows"][0], unpatch_y=sample[0])


def elements():
    x, up = rand(11, 13, scale=3.0), rand(11, 13)
    w, b, a_down, b_up = rand(9, 13) / 4, rand(9), rand(4, 13), rand(9, 4) / 4
    y = F.linear(x, w, b)
    put(act_x=x, act_up=up, act_silu=F.silu(x), act_gated=F.gelu(x, approximate="tanh") * up, linear_w=w, linear_b=b, linear_y=y,
        linear_gelu=F.gelu(y, approximate="tanh"), linear_silu=F.silu(y), lora_a=a_down, lora_b=b_up, lora_y=y + 0.5 * (x @ a_down.T) @ b_up.T)
    # frames: values around every rounding boundary, ends and beyond
    edges = (torch.arange(256, dtype=torch.float32) + 0.5) / 127.5 - 1
    frames = torch.cat([edges, torch.nextafter(edges, torch.tensor(2.0)), torch.nextafter(edges, torch.tensor(-2.0)), torch.randn(255) * 1.2,
                        torch.tensor([0.0, 1.0, -1.0])]).reshape(1, 1, -1, 3)
    half = (frames.clamp(-1, 1) / 2 + 0.5).clamp(0, 1)
    put(frames_x=frames, frames_u8=(half * 255).round().to(torch.uint8))


def conversions():
    bits = torch.randint(-2**31, 2**31 - 1, (1500,), dtype=torch.int64).to(torch.int32)
    some = torch.cat([bits.view(torch.float32), torch.randn(1000), torch.randn(500) * 1e-6, torch.randn(200) * 65504,
                      torch.tensor([0.0, -0.0, 65519.0, 65520.0, 2**-24, 2**-25, 2**-26, float("inf"), float("nan")])])
    put(convert_f32=some, convert_bf16=some.to(torch.bfloat16).view(torch.int16).to(torch.int32), convert_f16=some.to(torch.float16).view(torch.int16).to(torch.int32))
    every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    put(convert_e4m3=every.view(torch.float8_e4m3fn).to(torch.float32), convert_e5m2=every.view(torch.float8_e5m2).to(torch.float32))
    all16 = torch.arange(0, 65536, 37, dtype=torch.int32)
    put(convert_bits=all16, convert_from_f16=all16.to(torch.int16).view(torch.float16).to(torch.float32))


def main():
    torch.manual_seed(20)
    torch.set_num_threads(2)
    with torch.no_grad():
        for part in (convolutions, attention, norms, rotation, patches, elements, conversions):
            part()
    save_file(OUT, sys.argv[1] + "/ops.safetensors")


main()
