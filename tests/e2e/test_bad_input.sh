#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Bad input, as somebody who wants to break the program would give it: broken models, absurd settings, odd prompts, outputs that cannot be
# written, too little memory, values that are not finite, signals. Every refusal has one error line with what was given and a remedy, the
# exit code of docs/exit-codes.md, and leaves nothing behind. Usage: test_bad_input.sh PROGRAM SOURCE_DIR
set -u
reel=$(realpath "$1")
source_dir=$(realpath "$2")
model=$source_dir/models/wan-tiny-t2v
work=$(mktemp -d)
is_mounted=0
trap '[ $is_mounted = 0 ] || umount -l "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/cwd" && cd "$work/cwd" || exit 1
out=$work/out err=$work/err
n_check=0
n_failed=0
n_skipped=0
last=

fail() {
    n_failed=$((n_failed + 1))
    echo "FAILED: $1"
    sed 's/^/    /' "$err" 2>/dev/null | head -12
}
skip() {
    n_skipped=$((n_skipped + 1))
    echo "SKIPPED: $1"
}
run() { # CODE arguments…
    local want=$1 got=0
    shift
    last="reel $(printf '%.120q ' "$@")"
    "$reel" "$@" >"$out" 2>"$err" </dev/null || got=$?
    n_check=$((n_check + 1))
    [ "$got" -eq "$want" ] || fail "$last: exit code $got instead of $want"
}
has() { # FILE TEXT
    n_check=$((n_check + 1))
    grep -qF -- "$2" "$1" || fail "$last: no \"$2\""
}
is_true() { # TEXT command…
    local text=$1
    shift
    n_check=$((n_check + 1))
    "$@" >/dev/null 2>&1 || fail "$last: $text"
}
cwd_is() { # names… : exactly these stand in the folder, hidden ones included
    n_check=$((n_check + 1))
    [ "$(find . -mindepth 1 | sort | tr '\n' ' ')" = "${1:-}" ] || fail "$last: the folder holds $(find . -mindepth 1 | sort | tr '\n' ' ')"
}
explained() {
    n_check=$((n_check + 1))
    [ "$(grep -c '^reel: error: ' "$err")" -eq 1 ] || fail "$last: there is not one error line"
    has "$err" '  given: '
    has "$err" '  remedy: '
}
refused() { # CODE TEXT arguments…
    local code=$1 text=$2
    shift 2
    run "$code" "$@"
    has "$err" "$text"
    explained
    n_check=$((n_check + 1))
    [ ! -s "$out" ] || fail "$last: something on standard output"
    cwd_is ''
}
tiny=(--size 32x32 --frames 5 --steps 1 --dtype f32 --seed 1 -q)

# ---- broken models -----------------------------------------------------------------------------------------------------------------
# Every folder is the bundled model through links, with one file changed.
cat >"$work/break.py" <<'PY'
import json, os, shutil, struct, sys
source, target = sys.argv[1:]
DIT = 'transformer/diffusion_pytorch_model.safetensors'

def copy(name, *changed):
    """A folder of links; `changed` files are left for the caller to write. Returns its path."""
    for folder, _, files in os.walk(source):
        to = os.path.join(target, name, os.path.relpath(folder, source))
        os.makedirs(to, exist_ok=True)
        for f in files:
            if os.path.normpath(os.path.join(os.path.relpath(folder, source), f)) not in changed:
                os.symlink(os.path.join(folder, f), os.path.join(to, f))
    return os.path.join(target, name)

def read(path):
    with open(os.path.join(source, path), 'rb') as f:
        return f.read()

def split(data):
    n = struct.unpack('<Q', data[:8])[0]
    return json.loads(data[8:8 + n]), data[8 + n:]

def join(header, body):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + body

def write(name, path, data):
    with open(os.path.join(copy(name, path), path), 'wb') as f:
        f.write(data)

whole = read(DIT)
def changed(name, change):
    header, body = split(whole)
    names = sorted((k for k in header if k != '__metadata__'), key=lambda k: header[k]['data_offsets'])
    result = change(header, names)
    write(name, DIT, join(header if result is None else result, body))

write('empty', DIT, b'')
write('short', DIT, whole[:len(whole) // 2])
write('one-byte-short', DIT, whole[:-1])
write('one-byte-long', DIT, whole + b'\0')
write('header-huge', DIT, struct.pack('<Q', 2**64 - 1) + whole[8:])
write('header-beyond', DIT, struct.pack('<Q', len(whole)) + whole[8:])
write('header-cut', DIT, struct.pack('<Q', 100) + whole[8:])
write('pickle-inside', DIT, b'\x80\x02}q\x00.' * 100)
write('web-page', DIT, b'<html>not found</html>' * 10)
write('lfs-pointer', DIT, b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')
write('text-deep', DIT, join(b'[' * 100000, b''))
write('header-array', DIT, join(b'[]', b''))
def offsets(values):
    def change(h, n): h[n[1]]['data_offsets'] = values(h[n[1]]['data_offsets'])
    return change
changed('overlap', lambda h, n: h[n[1]].update(data_offsets=h[n[0]]['data_offsets'], shape=h[n[0]]['shape'], dtype=h[n[0]]['dtype']))
changed('offsets-beyond', offsets(lambda o: [o[0] + 2**40, o[1] + 2**40]))
changed('offsets-negative', offsets(lambda o: [-8, o[1]]))
changed('offsets-turned', offsets(lambda o: [o[1], o[0]]))
changed('offsets-text', offsets(lambda o: ['0', '8']))
changed('offsets-one', offsets(lambda o: o[:1]))
changed('count-huge', lambda h, n: h[n[1]].update(shape=[2**40, 2**40]))
changed('count-wraps', lambda h, n: h[n[1]].update(shape=[2**32, 2**32, 2**32]))
changed('count-negative', lambda h, n: h[n[1]].update(shape=[-1]))
changed('count-fraction', lambda h, n: h[n[1]].update(shape=[1.5]))
changed('count-too-big-for-json', lambda h, n: json.dumps(h).replace('"shape": [', '"shape": [' + '9' * 40 + ', ', 1).encode())
changed('dimensions', lambda h, n: h[n[1]].update(shape=[1] * 50))
changed('dtype-unknown', lambda h, n: h[n[1]].update(dtype='F7'))
changed('dtype-number', lambda h, n: h[n[1]].update(dtype=7))
changed('name-twice', lambda h, n: json.dumps(h).replace(json.dumps(n[1]), json.dumps(n[0]), 1).encode())
changed('name-bytes', lambda h, n: json.dumps(h).encode().replace(n[1].encode(), b'\xff\xfe', 1))
changed('name-missing', lambda h, n: h.update({'other': h.pop(n[1])}))
changed('shape-other', lambda h, n: h[n[1]].update(shape=[1] + h[n[1]]['shape']))

index = 'transformer/diffusion_pytorch_model.safetensors.index.json'
header, _ = split(whole)
folder = copy('shard-missing', DIT)
weight_map = {k: 'diffusion_pytorch_model-00001-of-00002.safetensors' for k in header if k != '__metadata__'}
weight_map[next(iter(weight_map))] = 'diffusion_pytorch_model-00002-of-00002.safetensors'
with open(os.path.join(folder, index), 'w') as f: json.dump({'metadata': {}, 'weight_map': weight_map}, f)
with open(os.path.join(folder, 'transformer/diffusion_pytorch_model-00001-of-00002.safetensors'), 'wb') as f: f.write(whole)
folder = copy('shard-outside', DIT)
with open(os.path.join(folder, index), 'w') as f: json.dump({'weight_map': {k: '../../../etc/passwd' for k in weight_map}}, f)
copy('weights-missing', DIT)
folder = copy('weights-pickle', DIT)
with open(os.path.join(folder, 'transformer/diffusion_pytorch_model.bin'), 'wb') as f: f.write(b'PK\3\4' * 10)
copy('tokenizer-missing', 'tokenizer/spiece.model', 'tokenizer/tokenizer.json')
copy('config-missing', 'vae/config.json')
copy('index-missing', 'model_index.json')
write('tokenizer-cut', 'tokenizer/tokenizer.json', read('tokenizer/tokenizer.json')[:5000])
os.unlink(os.path.join(target, 'tokenizer-cut/tokenizer/spiece.model'))
with open(os.path.join(target, 'tokenizer-cut/tokenizer/spiece.model'), 'wb') as f: f.write(read('tokenizer/spiece.model')[:5000])

def config(name, path, **values):
    c = json.loads(read(path)); c.update(values); write(name, path, json.dumps(c).encode())
config('config-text', 'transformer/config.json', num_layers='six')
config('config-bool', 'transformer/config.json', num_layers=True)
config('config-null', 'transformer/config.json', num_attention_heads=None)
config('config-list', 'transformer/config.json', ffn_dim=[448])
config('config-zero', 'transformer/config.json', num_attention_heads=0)
config('config-negative', 'transformer/config.json', attention_head_dim=-128)
config('config-huge', 'transformer/config.json', num_layers=10**9)
config('config-huger', 'transformer/config.json', ffn_dim=10**30)
config('config-patch', 'transformer/config.json', patch_size=[1, 0, 2])
config('config-layers', 'transformer/config.json', num_layers=7)
config('vae-other', 'vae/config.json', z_dim=48)
config('vae-width', 'vae/config.json', base_dim=96)
config('text-other', 'text_encoder/config.json', d_model=4096)
config('text-heads', 'text_encoder/config.json', num_heads=0)
config('class-other', 'model_index.json', _class_name='StableDiffusionPipeline')
write('config-cut', 'vae/config.json', b'{"z_dim": 16')
write('config-array', 'vae/config.json', b'[]')
write('config-bytes', 'vae/config.json', b'{"z_dim\xff": 16}')
config('reel-json-key', 'reel.json', setps=3)
config('reel-json-value', 'reel.json', steps='many')
config('reel-json-size', 'reel.json', size='33x33')

def filled(name, path, value):
    """All float weights that are matrices of one component hold the same value."""
    header, body = split(read(path)); body = bytearray(body)
    for k, t in header.items():
        if k == '__metadata__' or t['dtype'] != 'BF16': continue
        a, b = t['data_offsets']
        body[a:b] = struct.pack('<H', value) * ((b - a) // 2)
    write(name, path, join(header, bytes(body)))
filled('nan', DIT, 0x7FC0)
filled('nan-text', 'text_encoder/model.safetensors', 0x7FC0)
filled('huge', DIT, 0x7E00)
filled('nan-low', DIT.replace('transformer/', 'transformer_2/'), 0x7FC0)
header, body = split(read('vae/diffusion_pytorch_model.safetensors')); body = bytearray(body)
for k, t in header.items():
    if k != '__metadata__' and t['dtype'] == 'F16':
        a, b = t['data_offsets']; body[a:b] = b'\0\x7e' * ((b - a) // 2)
write('nan-vae', 'vae/diffusion_pytorch_model.safetensors', join(header, bytes(body)))
shutil.copy(os.path.join(source, 'model_index.json'), os.path.join(target, 'model.pth'))
PY
mkdir "$work/m"
python3 "$work/break.py" "$model" "$work/m" || exit 1

broken() { # CODE NAME [TEXT]: refused by generate, and listed by inspect
    refused "$1" "${3:-}" generate --model "$work/m/$2" "${tiny[@]}" --prompt a -o a.mp4
    run 3 inspect "$work/m/$2"
    explained
}
for name in empty short one-byte-short one-byte-long header-huge header-beyond header-cut pickle-inside web-page lfs-pointer text-deep header-array \
    overlap offsets-beyond offsets-negative offsets-turned offsets-text offsets-one count-huge count-wraps count-negative count-fraction \
    count-too-big-for-json dtype-unknown dtype-number name-twice name-bytes name-missing shape-other shard-missing shard-outside \
    weights-missing weights-pickle; do
    broken 3 $name transformer
done
broken 4 dimensions 'too many dimensions'
broken 4 config-patch patch_size
for name in config-text config-bool config-null config-list config-zero config-negative config-huge config-huger config-layers; do
    broken 3 $name
done
for name in config-missing config-cut config-array config-bytes vae-other vae-width; do broken 3 $name vae; done
for name in text-other text-heads; do broken 3 $name; done
broken 3 tokenizer-missing tokenizer
broken 3 tokenizer-cut
broken 3 index-missing model_index.json
broken 4 class-other StableDiffusionPipeline
broken 3 model.pth pickle
broken 3 none-there 'not there'
refused 3 'setps' generate --model "$work/m/reel-json-key" --prompt a -o a.mp4
refused 3 'steps' generate --model "$work/m/reel-json-value" --prompt a -o a.mp4
refused 2 '33x33' generate --model "$work/m/reel-json-size" --prompt a -o a.mp4

# ---- values that are not finite: the stage and the step are named ------------------------------------------------------------------------
refused 8 'step 1' generate --model "$work/m/nan" "${tiny[@]}" --prompt a -o a.mp4
refused 8 'step 1' generate --model "$work/m/huge" "${tiny[@]}" --prompt a -o a.mp4
refused 8 'step ' generate --model "$work/m/nan-low" --size 32x32 --frames 5 --steps 4 --dtype f32 --seed 1 -q --prompt a -o a.mp4
refused 8 '' generate --model "$work/m/nan-text" "${tiny[@]}" --prompt a -o a.mp4
refused 8 '' generate --model "$work/m/nan-vae" "${tiny[@]}" --prompt a -o a.mp4

# ---- sizes, lengths, memory ---------------------------------------------------------------------------------------------------------------
for value in 0x0 -64x64 64 64x 64xx64 x64 64x64x64 1e9x64 99999999999x64 '' 65x64 nanxnan; do refused 2 size generate --prompt a -o a.mp4 --size "$value"; done
for value in -1 1.5 x 1000000000 99999999999999999999; do refused 2 frames generate --prompt a -o a.mp4 --frames "$value"; done
refused 2 'positions' generate --prompt a --size 65536x65536 --frames 4097 -o a.mp4
refused 5 'not enough memory' generate --prompt a --size 16384x16384 --frames 401 -o a.mp4
fits=$(grep -o -- '--size [0-9x]* should fit' "$err" | grep -o '[0-9]*x[0-9]*')
is_true 'no size that would fit is named' [ -n "$fits" ]
refused 5 'not enough memory' plan --size 16384x16384 --frames 401
run 0 plan --size "${fits:-none}" --frames 401
run 0 plan --size 64x64 --frames 6; has "$out" 'the clip has 5'
kib=100000 # the smallest address space, of these, that the program starts in
while [ $kib -lt 3000000 ] && ! (ulimit -v $kib; "$reel" --version >"$out" 2>&1); do kib=$((kib + 50000)); done
code=0
(ulimit -v $kib; "$reel" generate "${tiny[@]}" --prompt a -o a.mp4 >"$out" 2>"$err") || code=$?
last="generate in $kib KiB of address space"
is_true "exit code $code instead of 5" [ $code -eq 5 ]
explained; cwd_is ''; rm -f ./*

# ---- settings --------------------------------------------------------------------------------------------------------------------------
for value in 0 1000000000 -1 99999999999999999999; do refused 2 steps generate --prompt a -o a.mp4 --steps "$value"; done
for value in 18446744073709551616 -9223372036854775809 1e3 ''; do refused 2 seed generate --prompt a -o a.mp4 --seed "$value"; done
for value in nan NaN inf -0.5 1e30 ''; do refused 2 guidance generate --prompt a -o a.mp4 --guidance-scale "$value"; done
for option in flow-shift boundary-ratio fps guidance-scale-2; do key=${option//-/_}
    for value in nan -1 1e30; do refused 2 "$key" generate --prompt a -o a.mp4 --$option $value; done
done
refused 2 'did you mean --guidance-scale?' generate --prompt a -o a.mp4 --guidence-scale 3
refused 2 'repeated' generate --prompt a -o a.mp4 --seed 1 --seed 1
refused 2 'contradict' generate --prompt a -o a.mp4 --size 64x64 --resolution 480p
refused 2 'contradict' generate --prompt a --prompt-file /dev/null -o a.mp4
refused 2 'allowed' generate --prompt a -o a.xyz
refused 2 'allowed' generate --prompt a -o a
refused 2 'crf' generate --prompt a -o a.gif --crf 3
refused 2 'clip-%03d.mp4' generate --prompt a --clips 2 -o a.mp4
for pattern in 'a-%s.mp4' 'a-%d-%d.mp4' 'a-%n.mp4' 'a-%999d.mp4' 'a-%'; do refused 2 '' generate --prompt a --clips 2 -o "$pattern"; done
for scale in 0 1; do
    run 0 generate "${tiny[@]}" --prompt a --guidance-scale $scale -o a.mp4; cwd_is './a.mp4 '; rm -f a.mp4
done

# ---- prompts -----------------------------------------------------------------------------------------------------------------------------
long=$(printf 'circle %.0s' $(seq 1500))
run 0 generate "${tiny[@]}" --prompt '' -o a.mp4; cwd_is './a.mp4 '
run 0 encode --prompt "$long LASTWORD" -o b.safetensors; has "$err" 'were cut, beginning with "circle'; has "$err" '512'
run 0 encode --prompt $'two\nlines\t\xf0\x9f\x94\xb4 </s> <pad> \xe4\xb8\xad' -o c.safetensors; is_true 'nothing written' test -s c.safetensors
run 0 encode --prompt "$(head -c 10000 /dev/zero | tr '\0' x)" -o d.safetensors
rm -f ./*
for bytes in $'\xff' $'a\xc0\x80' $'\xed\xa0\x80' $'a \xf0\x9f'; do refused 2 'UTF-8' generate --prompt "$bytes" -o a.mp4; done
printf 'a\xffb\n' >"$work/bytes.txt"
refused 2 'UTF-8' generate --prompt-file "$work/bytes.txt" -o a.mp4
printf 'a\0b\n' >"$work/zero.txt"
refused 2 '' generate --prompt-file "$work/zero.txt" -o a.mp4
refused 6 '' generate --prompt-file "$work" -o a.mp4

# ---- configuration files -------------------------------------------------------------------------------------------------------------------
config() { # CODE TEXT JSON
    printf '%b' "$3" >"$work/c.json"
    refused "$1" "$2" generate --prompt a -o a.mp4 --config "$work/c.json"
}
config 2 'did you mean "steps"?' '{"stpes": 3}'
config 2 steps '{"steps": "three"}'
config 2 steps '{"steps": 1.5}'
config 2 steps '{"steps": [1]}'
config 2 steps '{"steps": 1e9}'
config 2 size '{"size": 64}'
config 2 seed '{"seed": -1.5}'
config 2 clobber '{"no_clobber": "yes"}'
config 2 JSON '[]'
config 2 JSON ''
config 2 JSON '{"steps": 1, "steps": 2}'
config 2 JSON '{"steps": 1} more'
config 2 JSON '{"prompt": "\xff"}'
config 2 'may not hold' '{"config": "other.json"}'

# ---- where the clip goes ---------------------------------------------------------------------------------------------------------------------
refused 6 'no-such' generate --prompt a -o no-such/a.mp4
refused 6 'null' generate --prompt a -o /dev/null/a.mp4
refused 6 '' generate --prompt a -o /proc/a.mp4
refused 6 '' generate "${tiny[@]}" --prompt a -o a.mp4 --x-dump /proc/dump
refused 6 '' generate "${tiny[@]}" --prompt a -o a.mp4 --preview /proc/p-%03d.png
mkdir kept.mp4; run 6 generate "${tiny[@]}" --prompt a -o kept.mp4; explained; cwd_is './kept.mp4 '; rmdir kept.mp4
mkdir kept.json; run 6 generate "${tiny[@]}" --prompt a --sidecar -o kept.mp4; explained; cwd_is './kept.json '; rmdir kept.json
printf old >kept.mp4
run 6 generate --prompt a --no-clobber -o kept.mp4; explained; is_true 'changed' grep -qx old kept.mp4
run 8 generate --model "$work/m/nan" "${tiny[@]}" --prompt a -o kept.mp4; is_true 'changed' grep -qx old kept.mp4; cwd_is './kept.mp4 '
rm kept.mp4
# a limit on file size stands for a full disk: 512 bytes are fewer than any clip has
for ending in mp4 webm gif y4m; do
    code=0
    (trap '' XFSZ; ulimit -f 1; "$reel" generate "${tiny[@]}" --prompt a -o a.$ending >"$out" 2>"$err") || code=$?
    last="a $ending that meets a file limit"
    is_true "exit code $code instead of 6" [ $code -eq 6 ]; explained; cwd_is ''
done
mkdir "$work/small"
if mount -t tmpfs -o size=8k none "$work/small" 2>/dev/null; then
    is_mounted=1
    for ending in mp4 gif y4m png; do
        name=$work/small/a.$ending
        [ $ending = png ] && name=$work/small/a-%03d.png
        run 6 generate --size 128x128 --frames 17 --steps 1 --dtype f32 --seed 1 -q --prompt a -o "$name"; explained
        is_true 'something stayed on the full disk' [ -z "$(ls -A "$work/small")" ]
    done
else
    skip 'a full disk: no right to mount a tmpfs'
fi
mkdir "$work/ä b %d ü" && run 0 generate --model "$model" "${tiny[@]}" --prompt a -o "$work/ä b %d ü/ö 1.mp4"
is_true 'no clip' test -s "$work/ä b %d ü/ö 1.mp4"
ln -s "$model" "$work/mödel x"
run 0 inspect "$work/mödel x"
(cd "$source_dir/models" && "$reel" inspect wan-tiny-t2v >/dev/null 2>&1) || fail 'a relative model path'
code=0; env -i "$reel" devices >"$out" 2>"$err" || code=$?
last='reel devices with an empty environment'; is_true "exit code $code" [ $code -eq 0 ]

# ---- repeating a clip ------------------------------------------------------------------------------------------------------------------------
run 0 generate "${tiny[@]}" --prompt a -o "$work/one.mp4"
head -c 1000 "$work/one.mp4" >"$work/cut.mp4"
refused 6 'cut.mp4' generate --from "$work/cut.mp4" -o a.mp4
refused 6 '' generate --from "$work/bytes.txt" -o a.mp4
refused 6 '' generate --from "$work" -o a.mp4
printf '{}' >"$work/side.json"; refused 2 'side.json' generate --from "$work/side.json" -o a.mp4
run 0 generate --from "$work/one.mp4" --seed 2 -o a.mp4; has "$err" '--seed 2'; rm -f a.mp4

# ---- signals, at a moment of each phase -------------------------------------------------------------------------------------------------------
for moment in 0.03 0.05 0.1 0.2 0.4 0.8; do
    for signal in INT:130 TERM:143; do
        last="SIG${signal%:*} after $moment s"
        # without the script's own trap, which a subshell that is stopped before exec would run
        (trap - EXIT; exec env --default-signal=INT "$reel" generate --size 32x32 --frames 5 --steps 1000 --dtype f32 --prompt a --seed 1 -o a.mp4) \
            >"$out" 2>"$err" &
        pid=$!
        sleep $moment
        kill -s "${signal%:*}" $pid
        code=0
        wait $pid || code=$?
        is_true "exit code $code" [ "$code" -eq "${signal#*:}" ]
        cwd_is ''
    done
done
code=0
"$reel" generate "${tiny[@]}" --prompt a -o - 2>"$err" >/dev/full || code=$?
last='-o - to a full device'; is_true "exit code $code instead of 6" [ $code -eq 6 ]; explained

echo "$n_check checks, $n_failed failed, $n_skipped skipped"
[ "$n_failed" -eq 0 ]
