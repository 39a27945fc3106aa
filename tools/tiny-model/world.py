# SPDX-License-Identifier: Apache-2.0
"""The world the tiny model knows: scenes of moving coloured shapes, and sentences about them.

A scene is a small dict (one or two objects, a background, how each object moves).
`sample_scene` draws one, `captions` writes sentences about it (English and some
Chinese). The random source is always an explicit numpy Generator.
"""
import numpy as np

SIZE, FRAMES = 128, 17

SHAPES = ["circle", "square", "triangle", "star", "heart"]
COLORS = {
    "red": (222, 38, 38), "orange": (245, 140, 28), "yellow": (250, 222, 50),
    "green": (38, 168, 70), "blue": (38, 88, 230), "purple": (138, 56, 190),
    "pink": (250, 130, 190), "white": (245, 245, 245), "black": (18, 18, 18),
}
# name: (kind, first colour, second colour); kinds: plain, checks (16 pixel squares), vertical gradient
PLAIN, CHECKS, GRADIENT = 0, 1, 2
BACKGROUNDS = {
    "white": (PLAIN, (240, 240, 240), (240, 240, 240)),
    "black": (PLAIN, (14, 14, 14), (14, 14, 14)),
    "gray": (PLAIN, (128, 128, 128), (128, 128, 128)),
    "light blue": (PLAIN, (165, 212, 250), (165, 212, 250)),
    "dark blue": (PLAIN, (20, 30, 92), (20, 30, 92)),
    "light green": (PLAIN, (172, 226, 172), (172, 226, 172)),
    "checkered": (CHECKS, (226, 226, 226), (172, 172, 172)),
    "gradient": (GRADIENT, (252, 176, 92), (92, 60, 160)),
}
DIRECTIONS = {
    "right": (1, 0), "left": (-1, 0), "up": (0, -1), "down": (0, 1),
    "up_right": (1, -1), "up_left": (-1, -1), "down_right": (1, 1), "down_left": (-1, 1),
}
MOTIONS = list(DIRECTIONS) + ["bounce", "spin_cw", "spin_ccw", "grow", "shrink", "still", "orbit", "swing"]
MOTION_WEIGHT = np.array([10, 10, 9, 9, 3, 3, 3, 3, 7, 5, 5, 6, 6, 8, 5, 4], float)
MOTION_WEIGHT /= MOTION_WEIGHT.sum()


def contrast(color, background):
    """Smallest RGB distance between an object colour and a background's colours."""
    c = np.array(COLORS[color], float)
    kind, a, b = BACKGROUNDS[background]
    a, b = np.array(a, float), np.array(b, float)
    return min(np.linalg.norm(c - (a * (1 - k) + b * k)) for k in (0.0, 0.5, 1.0))


ALLOWED = {b: [c for c in COLORS if contrast(c, b) >= 100] for b in BACKGROUNDS}


# --- scenes ------------------------------------------------------------------

def _radius(rng, size):
    lo, hi = {"small": (10.0, 12.5), "medium": (16.0, 19.5), "large": (25.0, 29.0)}[size]
    return rng.uniform(lo, hi)


def _margin(r):
    return 1.25 * r + 3


def _place(rng, place, m):
    """A resting position for a named place."""
    far = max(34.0, m)
    x, y = {"center": (64, 64), "left": (far, 64), "right": (SIZE - far, 64), "top": (64, far),
            "bottom": (64, SIZE - far)}.get(place, (None, None))
    if x is None:
        return rng.uniform(m, SIZE - m), rng.uniform(m, SIZE - m)
    j = 3.0
    return x + rng.uniform(-j, j), y + rng.uniform(-j, j)


def _move(rng, obj, x0=None, y0=None):
    """Fill obj['path']: FRAMES rows of centre x, centre y, radius, angle (radians, clockwise)."""
    t = np.linspace(0.0, 1.0, FRAMES)
    motion, r = obj["motion"], obj["radius"]
    m = _margin(r)
    x = np.full(FRAMES, x0 if x0 is not None else 0.0)
    y = np.full(FRAMES, y0 if y0 is not None else 0.0)
    rad, ang = np.full(FRAMES, r), np.zeros(FRAMES)
    if motion in DIRECTIONS:
        dx, dy = DIRECTIONS[motion]
        room = SIZE - 2 * m
        if obj["speed"] == "slow":
            dist = rng.uniform(20, 30)
        elif obj["speed"] == "fast":
            dist = rng.uniform(72, 92)
        else:
            dist = rng.uniform(42, 62)
        dist = min(dist, room)
        a = m + rng.uniform(0, room - dist) if room > dist else m
        b = m + rng.uniform(0, room - dist) if room > dist else m
        along = dist * t
        if dx:
            x = a + along if dx > 0 else SIZE - a - along
        elif x0 is None:
            x = np.full(FRAMES, rng.uniform(m, SIZE - m))
        if dy:
            y = b + along if dy > 0 else SIZE - b - along
        elif y0 is None:
            y = np.full(FRAMES, rng.uniform(m, SIZE - m))
    elif motion == "bounce":
        if x0 is None:
            x[:] = rng.uniform(m, SIZE - m)
        height = min(rng.uniform(45, 72), SIZE - 2 * m)
        y = SIZE - m - rng.uniform(0, 4) - height * np.abs(np.sin(np.pi * (rng.uniform(1.7, 2.2) * t + rng.uniform(0, 1))))
    elif motion == "orbit":
        rho = min(rng.uniform(24, 34), SIZE / 2 - m)
        phase = rng.uniform(0, 2 * np.pi) + 2 * np.pi * t * rng.uniform(0.95, 1.15)
        x, y = 64 + rho * np.cos(phase), 64 + rho * np.sin(phase)
    elif motion == "swing":
        amp = min(rng.uniform(26, 38), SIZE / 2 - m)
        x = 64 + amp * np.sin(2 * np.pi * (rng.uniform(1.3, 1.7) * t + rng.uniform(0, 1)))
        y[:] = rng.uniform(m, SIZE - m)
    else:
        if x0 is None:
            px, py = _place(rng, obj["place"], m)
            x[:], y[:] = px, py
        if motion in ("spin_cw", "spin_ccw"):
            ang = (1 if motion == "spin_cw" else -1) * np.deg2rad(rng.uniform(130, 190)) * t
        elif motion == "grow":
            rad = rng.uniform(6, 9) * (1 - t) + r * t
        elif motion == "shrink":
            rad = r * (1 - t) + rng.uniform(6, 9) * t
    obj["path"] = np.stack([x, y, rad, ang], 1).astype(np.float32)
    return obj


def sample_scene(rng, two=0.25):
    """Draw one scene. `two` is the share of scenes with two objects."""
    background = list(BACKGROUNDS)[rng.choice(8, p=[.17, .17, .11, .11, .11, .11, .11, .11])]
    colors = list(rng.permutation(ALLOWED[background]))
    if rng.random() < two:
        layout = ("beside", "stacked")[rng.integers(2)]
        objects = []
        for k in range(2):
            motions = ["up", "down", "still", "spin_cw", "bounce"] if layout == "beside" else ["right", "left", "still", "spin_cw"]
            motion = str(rng.choice(motions))
            shape = SHAPES[rng.integers(5)]
            while shape == "circle" and motion == "spin_cw":
                shape = SHAPES[rng.integers(5)]
            size = ("small", "medium")[int(rng.random() < 0.75)]
            obj = dict(shape=shape, color=colors[k], size=size, motion=motion, speed="normal",
                       radius=_radius(rng, size), place=("left", "right")[k] if layout == "beside" else ("top", "bottom")[k])
            here = 34 + 60 * k + rng.uniform(-4, 4)
            m = _margin(obj["radius"])
            other = rng.uniform(m, SIZE - m)
            objects.append(_move(rng, obj, *((here, other) if layout == "beside" else (other, here))))
        return dict(background=background, objects=objects, layout=layout)
    motion = MOTIONS[rng.choice(len(MOTIONS), p=MOTION_WEIGHT)]
    shape = SHAPES[rng.integers(5)]
    while shape == "circle" and motion.startswith("spin"):
        shape = SHAPES[rng.integers(5)]
    size = ("small", "medium", "large")[rng.choice(3, p=[.3, .4, .3])]
    speed, place = "normal", None
    if motion in DIRECTIONS and size != "large":
        speed = ("slow", "normal", "fast")[rng.choice(3, p=[.2, .6, .2])]
    if motion in ("grow", "shrink"):
        size = "large"
    if motion in ("still", "spin_cw", "spin_ccw", "grow", "shrink"):
        place = ("center", "left", "right", "top", "bottom", None)[rng.choice(6, p=[.45, .1, .1, .1, .1, .15])]
    obj = dict(shape=shape, color=colors[0], size=size, motion=motion, speed=speed, place=place, radius=_radius(rng, size))
    return dict(background=background, objects=[_move(rng, obj)], layout=None)


# --- sentences -----------------------------------------------------------------

def _pairs(*verbs):
    """'moving right|moves right' -> [('moving right', 'moves right')]"""
    return [tuple(v.split("|")) for v in verbs]


VERBS = {
    "right": _pairs("moving to the right|moves to the right", "moving right|moves right", "moving from left to right|moves from left to right",
                    "sliding to the right|slides to the right", "gliding from left to right|glides from left to right",
                    "going right|goes right", "drifting to the right|drifts to the right", "flying right|flies right"),
    "left": _pairs("moving to the left|moves to the left", "moving left|moves left", "moving from right to left|moves from right to left",
                   "sliding to the left|slides to the left", "gliding from right to left|glides from right to left",
                   "going left|goes left", "drifting to the left|drifts to the left", "flying left|flies left"),
    "up": _pairs("moving up|moves up", "moving upward|moves upward", "rising|rises", "moving from bottom to top|moves from bottom to top",
                 "going up|goes up", "floating up|floats up", "flying upward|flies upward"),
    "down": _pairs("moving down|moves down", "moving downward|moves downward", "falling|falls", "falling down|falls down",
                   "moving from top to bottom|moves from top to bottom", "going down|goes down", "sinking|sinks", "dropping down|drops down"),
    "bounce": _pairs("bouncing|bounces", "bouncing up and down|bounces up and down", "jumping up and down|jumps up and down", "hopping|hops"),
    "spin": _pairs("spinning|spins", "rotating|rotates", "spinning in place|spins in place", "rotating in place|rotates in place",
                   "turning around|turns around"),
    "spin_cw": _pairs("rotating clockwise|rotates clockwise", "spinning clockwise|spins clockwise", "turning clockwise|turns clockwise"),
    "spin_ccw": _pairs("rotating counterclockwise|rotates counterclockwise", "spinning counterclockwise|spins counterclockwise",
                       "turning counterclockwise|turns counterclockwise"),
    "grow": _pairs("growing|grows", "growing larger|grows larger", "getting bigger|gets bigger", "expanding|expands", "becoming larger|becomes larger"),
    "shrink": _pairs("shrinking|shrinks", "getting smaller|gets smaller", "becoming smaller|becomes smaller", "shrinking down|shrinks down"),
    "still": _pairs("standing still|stands still", "staying still|stays still", "not moving|does not move", "staying in place|stays in place",
                    "resting|rests"),
    "orbit": _pairs("moving in a circle|moves in a circle", "circling around|circles around", "moving in circles|moves in circles",
                    "going around in a circle|goes around in a circle"),
    "swing": _pairs("moving back and forth|moves back and forth", "swinging from side to side|swings from side to side",
                    "moving left and right|moves left and right"),
}
for _v, _h in (("up", "right"), ("up", "left"), ("down", "right"), ("down", "left")):
    _c = ("upper" if _v == "up" else "lower") + " " + _h
    _k = ("top" if _v == "up" else "bottom") + " " + _h
    VERBS[_v + "_" + _h] = _pairs(
        f"moving diagonally {_v} and to the {_h}|moves diagonally {_v} and to the {_h}", f"moving to the {_c}|moves to the {_c}",
        f"moving toward the {_k} corner|moves toward the {_k} corner", f"moving {_v} and {_h}|moves {_v} and {_h}",
        f"flying diagonally to the {_c}|flies diagonally to the {_c}")

SHAPE_WORDS = {"circle": ["circle", "circle", "ball", "ball", "disc", "dot"], "square": ["square", "square", "square", "box", "block"],
               "triangle": ["triangle"], "star": ["star"], "heart": ["heart"]}
COLOR_WORDS = {c: [c] for c in COLORS}
COLOR_WORDS["purple"] = ["purple", "purple", "violet"]
SIZE_WORDS = {"small": ["small", "small", "little", "tiny"], "large": ["large", "large", "big", "huge"], "medium": ["medium-sized"]}
SPEED_WORDS = {"slow": ["slowly"], "fast": ["quickly", "fast", "rapidly"]}
GROUND_WORDS = {b: [b + " background"] for b in BACKGROUNDS}
GROUND_WORDS["gray"] = ["gray background", "grey background"]
GROUND_WORDS["light blue"] = ["light blue background", "light blue background", "sky blue background"]
GROUND_WORDS["dark blue"] = ["dark blue background", "dark blue background", "navy blue background"]
GROUND_WORDS["checkered"] = ["checkered background", "checkerboard background", "checkered pattern"]
GROUND_WORDS["gradient"] = ["gradient background", "sunset gradient background", "orange and purple gradient"]
PLACE_WORDS = {"center": ["in the center", "in the middle", "in the center of the frame"], "left": ["on the left", "on the left side"],
               "right": ["on the right", "on the right side"], "top": ["at the top", "near the top"], "bottom": ["at the bottom", "near the bottom"]}
OPENERS = ["a video of", "a video of", "an animation of", "a clip of", "a short clip of", "a simple animation of", "footage of", "a scene with"]
TAILS = [", high quality", ", smooth animation", ", 4k", ", simple 2d animation", ", minimal style", ", clean vector graphics", ", cinematic"]
NEGATIVE = ["low quality", "blurry", "blurred", "static", "worst quality", "ugly", "deformed", "distorted", "noise", "text", "watermark",
            "subtitles", "jpeg artifacts", "overexposed", "bad colors", "still picture", "messy background", "flickering", "bright tones"]

NEGATIVE_EN = (
    "Bright tones, overexposed, static, blurred details, subtitles, style, works, paintings, images, static, overall gray, worst quality, "
    "low quality, JPEG compression residue, ugly, incomplete, extra fingers, poorly drawn hands, poorly drawn faces, deformed, disfigured, "
    "misshapen limbs, fused fingers, still picture, messy background, three legs, many people in the background, walking backwards")
NEGATIVE_ZH = (
    "色调艳丽,过曝,静态,细节模糊不清,字幕,风格,作品,画作,画面,静止,整体发灰,最差质量,低质量,JPEG压缩残留,丑陋的,残缺的,多余的手指,"
    "画得不好的手部,画得不好的脸部,畸形的,毁容的,形态畸形的肢体,手指融合,静止不动的画面,杂乱的背景,三条腿,背景人很多,倒着走")

ZH_SHAPE = {"circle": ["圆形", "圆", "球"], "square": ["正方形", "方块"], "triangle": ["三角形"], "star": ["星星", "五角星"], "heart": ["心形", "爱心"]}
ZH_COLOR = {"red": "红色", "orange": "橙色", "yellow": "黄色", "green": "绿色", "blue": "蓝色", "purple": "紫色", "pink": "粉色", "white": "白色", "black": "黑色"}
ZH_GROUND = {"white": "白色背景", "black": "黑色背景", "gray": "灰色背景", "light blue": "浅蓝色背景", "dark blue": "深蓝色背景",
             "light green": "浅绿色背景", "checkered": "棋盘格背景", "gradient": "渐变背景"}
ZH_SIZE = {"small": ["小", "小小的"], "large": ["大", "巨大的"], "medium": ["中等大小的"]}
ZH_VERB = {"right": ["向右移动", "从左向右移动", "从左到右移动"], "left": ["向左移动", "从右向左移动", "从右到左移动"], "up": ["向上移动", "上升"],
           "down": ["向下移动", "下落"], "up_right": ["向右上方移动"], "up_left": ["向左上方移动"], "down_right": ["向右下方移动"],
           "down_left": ["向左下方移动"], "bounce": ["上下弹跳", "跳动"], "spin_cw": ["旋转", "顺时针旋转"], "spin_ccw": ["旋转", "逆时针旋转"],
           "grow": ["变大", "逐渐变大"], "shrink": ["变小", "逐渐变小"], "still": ["静止不动", "停在原地"], "orbit": ["绕圈移动", "转圈移动"],
           "swing": ["左右摆动", "来回移动"]}
ZH_SPEED = {"slow": "缓慢", "fast": "快速"}
ZH_PLACE = {"center": "中间", "left": "左边", "right": "右边", "top": "上方", "bottom": "下方"}


def _pick(rng, items):
    return items[int(rng.integers(len(items)))]


def _article(phrase):
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def _noun(rng, o, size_p=0.75, article=True):
    words = []
    if o["motion"] not in ("grow", "shrink") and rng.random() < (size_p if o["size"] != "medium" else 0.08):
        words.append(_pick(rng, SIZE_WORDS[o["size"]]))
    words += [_pick(rng, COLOR_WORDS[o["color"]]), _pick(rng, SHAPE_WORDS[o["shape"]])]
    phrase = " ".join(words)
    if not article:
        return phrase
    return "one " + phrase if rng.random() < 0.04 else _article(phrase)


def _verb(rng, o, full=False):
    """(gerund, finite) phrases for how the object moves."""
    key = o["motion"]
    if key in ("spin_cw", "spin_ccw") and not (full or rng.random() < 0.5):
        key = "spin"
    ing, fin = _pick(rng, VERBS[key])
    if o["speed"] != "normal" and (full or rng.random() < 0.75):
        word = _pick(rng, SPEED_WORDS[o["speed"]])
        if word != "fast" and rng.random() < 0.4:
            return word + " " + ing, word + " " + fin
        return ing + " " + word, fin + " " + word
    return ing, fin


def _ground(rng, scene):
    g = _pick(rng, GROUND_WORDS[scene["background"]])
    return _article(g), g


def english(rng, scene, full=False):
    """One English sentence. full: name every attribute, in plain words."""
    o = scene["objects"][0]
    the, bare = _ground(rng, scene)
    say_ground = full or rng.random() < 0.86
    on = _pick(rng, ["on", "on", "on", "against", "over", "in front of"]) + " " + the
    if len(scene["objects"]) == 2:
        a, b = scene["objects"]
        if rng.random() < 0.35:
            a, b = b, a
        na, nb = _noun(rng, a, 1.0 if full else 0.6), _noun(rng, b, 1.0 if full else 0.6)
        (ia, fa), (ib, fb) = _verb(rng, a), _verb(rng, b)
        if full or rng.random() < 0.55:
            pa, pb = _pick(rng, PLACE_WORDS[a["place"]]), _pick(rng, PLACE_WORDS[b["place"]])
            na, nb = na + " " + pa, nb + " " + pb
        form = int(rng.integers(5))
        if form == 0:
            text = f"{na} {fa} and {nb} {fb}"
        elif form == 1:
            text = f"{na} {ia} and {nb} {ib}"
        elif form == 2:
            text = f"{na} {ia}, and {nb} {ib}"
        elif form == 3:
            text = f"{_pick(rng, OPENERS)} {na} {ia} and {nb} {ib}"
        else:
            text = f"{na} is {ia} while {nb} is {ib}"
        if say_ground:
            text += (", " + bare) if rng.random() < 0.25 else (" " + on)
    else:
        noun = _noun(rng, o, 1.0 if full else 0.75)
        ing, fin = _verb(rng, o, full)
        place = ""
        if o["place"] and (full or rng.random() < 0.6):
            place = " " + _pick(rng, PLACE_WORDS[o["place"]])
        if not full and rng.random() < 0.04:
            ing, fin = "", ""
        form = int(rng.integers(9)) if ing else 9
        tail = (" " + on) if say_ground else ""
        if form == 0:
            text = f"{noun} {ing}{place}{tail}"
        elif form == 1:
            text = f"{noun} {fin}{place}{tail}"
        elif form == 2:
            text = f"{_pick(rng, OPENERS)} {noun} {ing}{place}{tail}"
        elif form == 3:
            text = f"on {the}, {noun} {fin}{place}" if say_ground else f"{noun} {fin}{place}"
        elif form == 4:
            text = f"{_noun(rng, o, article=False)}, {ing}{place}" + (f", {bare}" if say_ground else "")
        elif form == 5:
            text = f"there is {noun}{place}{tail}. It {fin}" if rng.random() < 0.5 else f"{noun} is {ing}{place}{tail}"
        elif form == 6:
            text = f"{noun} {fin}{place}" + (f". The background is {the.replace(' background', '')}" if say_ground and bare.endswith(" background") and scene["background"] not in ("gradient",) else tail)
            text = text.replace("The background is a ", "The background is ").replace("The background is an ", "The background is ")
        elif form == 7:
            text = f"{noun} {ing}{place}" + (f", {bare}" if say_ground else "")
        elif form == 8:
            text = f"the {_noun(rng, o, article=False)} {fin}{place}{tail}"
        else:
            text = f"{noun}{place}{tail}"
    if not full and rng.random() < 0.06:
        text += _pick(rng, TAILS)
    if rng.random() < 0.6:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.5:
        text += "."
    return text


def chinese(rng, scene):
    def noun(o):
        size = _pick(rng, ZH_SIZE[o["size"]]) if o["motion"] not in ("grow", "shrink") and rng.random() < (0.7 if o["size"] != "medium" else 0.05) else ""
        if size.endswith("的"):
            return "一个" + size + ZH_COLOR[o["color"]] + _pick(rng, ZH_SHAPE[o["shape"]])
        return "一个" + ZH_COLOR[o["color"]] + _pick(rng, ["的", ""]) + size + _pick(rng, ZH_SHAPE[o["shape"]])

    def verb(o):
        v = _pick(rng, ZH_VERB[o["motion"]])
        return ZH_SPEED[o["speed"]] + v if o["speed"] != "normal" and rng.random() < 0.7 else v

    ground = ZH_GROUND[scene["background"]]
    if len(scene["objects"]) == 2:
        text = ",".join((ZH_PLACE[o["place"]] if rng.random() < 0.55 else "") + noun(o) + verb(o) for o in scene["objects"])
    else:
        o = scene["objects"][0]
        text = noun(o) + (("在" + ZH_PLACE[o["place"]]) if o["place"] and rng.random() < 0.5 else "") + verb(o)
    if rng.random() < 0.86:
        text = text + "," + ground if rng.random() < 0.6 else ground + "," + text
    return text + ("。" if rng.random() < 0.4 else "")


def captions(rng, scene, count, zh=0.12):
    return [chinese(rng, scene) if rng.random() < zh else english(rng, scene) for _ in range(count)]


def negatives(rng, count):
    """Strings like those people give as negative prompts; trained as 'no condition'."""
    return [", ".join(str(s) for s in rng.permutation(NEGATIVE)[: rng.integers(1, 7)]) for _ in range(count)]


def long_negatives(rng, count):
    """The two negative prompts that are usual with Wan models, whole and shuffled."""
    out = [NEGATIVE_EN, NEGATIVE_ZH]
    while len(out) < count:
        tags = (NEGATIVE_EN.split(", "), NEGATIVE_ZH.split(","))[int(rng.random() < 0.5)]
        glue = ", " if tags[0].isascii() else ","
        out.append(glue.join(str(t) for t in rng.permutation(tags)[: rng.integers(6, len(tags) + 1)]))
    return out[:count]
