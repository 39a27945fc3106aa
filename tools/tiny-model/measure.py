#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ruler: looks at clips of one object and says what they show, with plain image analysis. NumPy and the ffmpeg program alone.

    measure.py FOLDER …           what the frames in each FOLDER (frame-%05d.png) show, as JSON
    measure.py --self-test        the ruler on 192 drawn clips, and one drawn clip against the recorded one: all must be right
    measure.py --prompts COUNT    COUNT sentences that name every attribute, as JSON (tests/e2e/prompts.json)

The background is the nearest of the eight; what differs from it by more than 42 levels is the object. Its colour is the median inside, its shape the
template of most overlap over 48 angles, its motion follows from the centroids and areas of all frames.
"""
import json
import pathlib
import sys

import numpy as np

import render
import world

GRID = 40
NAMES = list(world.COLORS)
PALETTE = np.array([world.COLORS[c] for c in NAMES], np.float32)
GROUNDS = {name: render.ground(name) for name in world.BACKGROUNDS}


def shape_templates(angles=48):
    """Binary pictures of every shape at every angle, scaled to unit area: [shape, angle, GRID*GRID]."""
    out = np.zeros((len(world.SHAPES), angles, GRID, GRID), np.float32)
    big = 160
    path = np.zeros((angles, 4), np.float32)
    path[:] = [big / 2, big / 2, 40, 0]
    path[:, 3] = np.arange(angles) * 2 * np.pi / angles
    for s, shape in enumerate(world.SHAPES):
        for a, m in enumerate(render.cover(shape, path, big, big) > 0.5):
            out[s, a] = normalise(m)
    return out.reshape(len(world.SHAPES), angles, -1)


def normalise(mask):
    """A mask centred on its centroid and scaled so that its area is a fixed share of the grid."""
    ys, xs = np.nonzero(mask)
    cy, cx, side = ys.mean(), xs.mean(), np.sqrt(len(ys))
    g = (np.arange(GRID) + 0.5 - GRID / 2) / GRID * 2.3 * side
    yi, xi = np.round(cy + g).astype(int), np.round(cx + g).astype(int)
    ok = ((yi >= 0) & (yi < mask.shape[0]))[:, None] & ((xi >= 0) & (xi < mask.shape[1]))[None]
    return (mask[np.clip(yi, 0, mask.shape[0] - 1)][:, np.clip(xi, 0, mask.shape[1] - 1)] & ok).astype(np.float32)


TEMPLATES = shape_templates()


def match_shape(mask, only=None):
    """(name, overlap, angle in degrees) of the best template."""
    m = normalise(mask).ravel()
    inter = TEMPLATES @ m
    iou = inter / (TEMPLATES.sum(-1) + m.sum() - inter)
    if only is not None:
        return only, iou[only].max(), iou[only].argmax() * 360.0 / iou.shape[1]
    best = iou.max(1)
    s = int(best.argmax())
    return world.SHAPES[s], float(best[s]), iou[s].argmax() * 360.0 / iou.shape[1]


def largest(mask):
    """Largest 4-connected part of a mask."""
    if not mask.any():
        return mask
    h, w = mask.shape                                       # every pixel takes the largest index that it can reach
    label = np.where(mask, np.arange(1, h * w + 1).reshape(h, w), 0)
    while True:
        new = label.copy()
        for _ in range(16):
            p = np.pad(new, 1)
            new = np.where(mask, np.maximum.reduce([p[1:-1, 1:-1], p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]), 0)
        if (new == label).all():
            break
        label = new
    ids, counts = np.unique(label[label > 0], return_counts=True)
    return label == ids[counts.argmax()]


def erode(m):
    p = np.pad(m, 1)
    return m & p[:-2, 1:-1] & p[2:, 1:-1] & p[1:-1, :-2] & p[1:-1, 2:]


def find_ground(clip):
    """(name, per-pixel background image); plain backgrounds take the colour that is really there."""
    mid = clip[[0, len(clip) // 2, -1]].astype(np.float32)
    best, score = None, 1e9
    for name, img in GROUNDS.items():
        s = np.median(np.abs(mid - img).mean(-1))
        if s < score:
            best, score = name, s
    img = GROUNDS[best]
    if world.BACKGROUNDS[best][0] == world.PLAIN:
        img = np.broadcast_to(np.median(mid.reshape(-1, 3), 0), img.shape)
    return best, img


def track(masks):
    """Centroid, area per frame; None where nothing is there."""
    out = []
    for m in masks:
        ys, xs = np.nonzero(m)
        out.append((xs.mean(), ys.mean(), float(len(ys))) if len(ys) >= 20 else None)
    return out


def motion_of(points, masks, shape):
    """Name the motion of one object from its centroids and areas."""
    good = [i for i, p in enumerate(points) if p]
    if len(good) < len(points) * 0.7:
        return "gone"
    p = np.array([points[i] for i in good])
    x, y = p[:, 0], p[:, 1]
    grow = np.sqrt(np.median(p[-2:, 2]) / np.median(p[:2, 2]))
    xr, yr = np.ptp(x), np.ptp(y)
    dx, dy = x[-1] - x[0], y[-1] - y[0]
    if max(xr, yr) < 10 and (grow > 1.5 or grow < 0.67):
        return "grow" if grow > 1 else "shrink"
    if max(xr, yr) < max(7.0, 0.5 * np.sqrt(np.median(p[:, 2]) / np.pi)):   # a turning heart's centroid circles
        if shape == "circle":
            return "still"
        s = world.SHAPES.index(shape)
        period = {"square": 90.0, "triangle": 120.0, "star": 72.0, "heart": 360.0}[shape]
        angles = [match_shape(masks[i], s)[2] for i in good]
        turn = sum(((b - a + period / 2) % period) - period / 2 for a, b in zip(angles, angles[1:]))
        if abs(turn) > 45:
            return "spin_cw" if turn > 0 else "spin_ccw"
        return "still"

    def reversals(v):
        n, ref, way = 0, v[0], 0
        for k in v:
            if way == 0:
                if abs(k - ref) > 6:
                    way, ref = np.sign(k - ref), k
            elif (k - ref) * way > 0:
                ref = k
            elif (ref - k) * way > 6:
                n, way, ref = n + 1, -way, k
        return n

    rx, ry = reversals(x), reversals(y)
    if rx >= 1 and ry >= 1 and xr > 18 and yr > 18:
        return "orbit"
    if ry >= 1 and yr > 14 and xr < 12:
        return "bounce"
    if rx >= 1 and xr > 14 and yr < 12:
        return "swing"
    octant = int(np.round(np.degrees(np.arctan2(dy, dx)) / 45)) % 8
    return ["right", "down_right", "down", "down_left", "left", "up_left", "up", "up_right"][octant]


def measure(clip):
    """What a clip [T,H,W,3] uint8 with one object shows."""
    name, img = find_ground(clip)
    masks = [largest(np.abs(f.astype(np.float32) - img).max(-1) > 42) for f in clip]
    points = track(masks)
    areas = [p[2] if p else 0 for p in points]
    k = int(np.argmax(areas))
    out = dict(background=name, color=None, shape=None, motion="gone", radius=0.0, overlap=0.0)
    if areas[k] < 20:
        return out
    inner = erode(erode(masks[k]))
    inner = inner if inner.sum() >= 12 else masks[k]
    rgb = np.median(clip[k][inner].astype(np.float32), 0)
    out["color"] = NAMES[int(np.linalg.norm(PALETTE - rgb, axis=1).argmin())]
    out["shape"], out["overlap"], _ = match_shape(masks[k])
    out["motion"] = motion_of(points, masks, out["shape"])
    out["radius"] = float(np.sqrt(np.median([a for a in areas if a > 0]) / np.pi))
    out["x"], out["y"] = float(np.mean([p[0] for p in points if p])), float(np.mean([p[1] for p in points if p]))
    return out


def same_motion(seen, asked):
    if asked in ("spin_cw", "spin_ccw"):
        return seen.startswith("spin")
    return seen == asked


def right(wanted, seen):
    """Which attributes of a wanted scene (a row of prompts.json) the measured clip has. Size counts where it was named and does not change."""
    out = dict(background=seen["background"] == wanted["background"], color=seen["color"] == wanted["color"],
               motion=same_motion(seen["motion"], wanted["motion"]), shape=seen["shape"] == wanted["shape"])
    out["all_four"] = all(out.values())
    if wanted["motion"] not in ("grow", "shrink") and wanted["size"] != "medium":
        out["size"] = seen["radius"] < 13.5 if wanted["size"] == "small" else seen["radius"] > 17.5
    return out


def make_prompts(count, seed=20250):
    """Scenes of one object and sentences about them that name every attribute; prompt i is meant for seed i."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        scene = world.sample_scene(rng, two=0.0)
        o = scene["objects"][0]
        rows.append((scene, dict(prompt=world.english(rng, scene, full=True), seed=i, background=scene["background"],
                                 **{k: o[k] for k in ("color", "shape", "motion", "size")})))
    return rows


def recorded_clip():
    """The scene of two objects that reference.py records, drawn; and the recorded bytes."""
    file = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/wan-tiny-t2v/vae.safetensors"
    raw = file.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8:8 + n])["clip_uint8"]
    first, last = entry["data_offsets"]
    drawn = render.to_uint8(render.draw(world.sample_scene(np.random.default_rng(8), two=1.0)))
    return drawn, np.frombuffer(raw[8 + n + first:8 + n + last], np.uint8).reshape(entry["shape"])


def self_test(count=192):
    bad = 0
    for scene, wanted in make_prompts(count):
        seen = measure(render.to_uint8(render.draw(scene)))
        if not all(right(wanted, seen).values()):
            bad += 1
            print("wrong:", wanted, "seen as", seen)
    drawn, recorded = recorded_clip()
    off = int((drawn != recorded).sum())
    print(f"{count - bad} of {count} drawn clips measured right; {off} bytes of the recorded clip differ from its drawing")
    return 1 if bad or off else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) == 3 and sys.argv[1] == "--prompts":
        rows = [json.dumps(row) for _, row in make_prompts(int(sys.argv[2]))]
        print("[\n " + ",\n ".join(rows) + "\n]")
        return 0
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    for folder in sys.argv[1:]:
        print(json.dumps(dict(folder=folder, **measure(render.read_frames(folder)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
