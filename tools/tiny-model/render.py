# SPDX-License-Identifier: Apache-2.0
"""Draws scenes of world.py as clips with anti-aliased edges, and reads and writes PNG frames. NumPy alone.

Shapes are signed distance functions, so an edge pixel's cover is simply 0.5 - distance. The arithmetic is float32 and in the order in which
the model's training clips were drawn: `to_uint8(draw(scene))` gives their very bytes (tests/fixtures/wan-tiny-t2v holds one).
"""
import math
import pathlib
import struct
import subprocess
import zlib

import numpy as np

import world


def _circle(u, v):
    return np.sqrt(u * u + v * v) - np.float32(0.9)


def _square(u, v):
    return np.maximum(np.abs(u), np.abs(v)) - np.float32(0.8)


def _triangle(u, v):
    return np.maximum(v, np.float32(0.8660254) * np.abs(u) - np.float32(0.5) * v) - np.float32(0.62)


def _star(u, v):
    step = math.pi / 5
    angle = np.arctan2(u, -v) + np.float32(step)            # from straight up, clockwise
    angle = np.abs(angle - np.floor(angle / np.float32(2 * step)) * np.float32(2 * step) - np.float32(step))
    rad = np.sqrt(u * u + v * v)
    x, y = rad * np.cos(angle), rad * np.sin(angle)         # tip on the x axis at 1.3
    ix, iy = 0.56 * math.cos(step), 0.56 * math.sin(step)
    ex, ey = ix - 1.3, iy
    return ((x - np.float32(1.3)) * np.float32(ey) - y * np.float32(ex)) / np.float32(math.hypot(ex, ey))


def _heart(u, v):
    s = np.float32(0.57)
    x, y = np.abs(u) * s, np.float32(0.56) - v * s
    lobe = np.sqrt((x - np.float32(0.25)) ** 2 + (y - np.float32(0.75)) ** 2) - np.float32(0.35355339)
    h = np.float32(0.5) * np.maximum(x + y, 0)
    body = np.sqrt(np.minimum(x * x + (y - 1) ** 2, (x - h) ** 2 + (y - h) ** 2)) * np.sign(x - y)
    return np.where(x + y > 1, lobe, body) / s


DISTANCE = dict(zip(world.SHAPES, (_circle, _square, _triangle, _star, _heart)))


def cover(shape, path, width=world.SIZE, height=world.SIZE):
    """Cover 0..1 of one object: path [T,4] (centre x, y, radius, angle) -> [T,height,width] float32."""
    cx, cy, r, a = (np.asarray(path, np.float32)[:, i, None, None] for i in range(4))
    dx = np.arange(width, dtype=np.float32)[None, None, :] + np.float32(0.5) - cx
    dy = np.arange(height, dtype=np.float32)[None, :, None] + np.float32(0.5) - cy
    u, v = (dx * np.cos(a) + dy * np.sin(a)) / r, (dy * np.cos(a) - dx * np.sin(a)) / r
    return np.clip(np.float32(0.5) - DISTANCE[shape](u, v) * r, 0, 1).astype(np.float32)


def ground(name, size=world.SIZE):
    """A background in 0..255: [size,size,3] float32."""
    kind, a, b = world.BACKGROUNDS[name]
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32) + np.float32(0.5)
    mix = np.zeros((size, size), np.float32)
    if kind == world.CHECKS:
        mix = (np.floor(xx / 16) + np.floor(yy / 16)) % 2
    elif kind == world.GRADIENT:
        mix = yy / size
    return np.array(a, np.float32) * (1 - mix[..., None]) + np.array(b, np.float32) * mix[..., None]


def draw(scene):
    """A scene as a clip in -1..1: [T,H,W,3] float32. Paths go through float16, as in the training pool."""
    image = np.broadcast_to(ground(scene["background"]) / np.float32(127.5) - 1, (world.FRAMES, world.SIZE, world.SIZE, 3))
    for thing in scene["objects"]:
        c = cover(thing["shape"], thing["path"].astype(np.float16))[..., None]
        color = np.array(world.COLORS[thing["color"]], np.float32) / np.float32(127.5) - 1
        image = image + c * (color - image)
    return image


def to_uint8(clip):
    """A clip in -1..1 as bytes, halves to even."""
    return np.round((np.clip(clip, -1, 1) + 1) * np.float32(127.5)).astype(np.uint8)


def write_png(path, image):
    """image: [H,W,3] uint8"""
    h, w, _ = image.shape
    raw = np.concatenate([np.zeros((h, 1), np.uint8), np.ascontiguousarray(image).reshape(h, w * 3)], 1).tobytes()

    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
                                   + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b""))


def read_frames(folder, size=world.SIZE):
    """The clip [T,size,size,3] uint8 in a folder of frame-%05d.png, read by the ffmpeg program without loss."""
    raw = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-i", str(pathlib.Path(folder) / "frame-%05d.png"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                         stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, size, size, 3)


def sheet(clips, frames=(0, 4, 8, 12, 16), gap=4):
    """Contact sheet of uint8 clips [N,T,H,W,3], one clip a row."""
    n, _, h, w, _ = clips.shape
    out = np.full((n * (h + gap), len(frames) * (w + 1), 3), 60, np.uint8)
    for i in range(n):
        for k, f in enumerate(frames):
            out[i * (h + gap):i * (h + gap) + h, k * (w + 1):k * (w + 1) + w] = clips[i, min(f, clips.shape[1] - 1)]
    return out
