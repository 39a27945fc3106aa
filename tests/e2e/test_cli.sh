#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: help, version, errors with their exit codes, generated pages, completion, prompts from files, configuration,
# JSON on a clean standard output, repeating a clip, signals. Usage: test_cli.sh PROGRAM SOURCE_DIR
set -u
reel=$(realpath "$1")
source_dir=$2
model=$source_dir/models/wan-tiny-t2v
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
n_check=0
n_failed=0

fail() {
    n_failed=$((n_failed + 1))
    echo "FAILED: $1"
    sed 's/^/    /' out err 2>/dev/null | head -20
}

# run CODE arguments…: the exit code must be CODE; output in files out and err
run() {
    local want=$1 got=0
    shift
    last="reel $*"
    "$reel" "$@" >out 2>err </dev/null || got=$?
    n_check=$((n_check + 1))
    [ "$got" -eq "$want" ] || fail "$last: exit code $got instead of $want"
}
has() { # FILE TEXT: the file holds the text
    n_check=$((n_check + 1))
    grep -qF -- "$2" "$1" || fail "$last: no \"$2\" in $1"
}
is_empty() {
    n_check=$((n_check + 1))
    [ ! -s "$1" ] || fail "$last: $1 is not empty"
}
check() { # TEXT command…: the command must succeed
    local text=$1
    shift
    n_check=$((n_check + 1))
    "$@" >/dev/null 2>&1 || fail "$text"
}
refused() { # CODE TEXT arguments…: an error in the form what, given, remedy; nothing on standard output, no file
    local code=$1 text=$2
    shift 2
    run "$code" "$@"
    has err "$text"
    n_check=$((n_check + 1))
    [ "$(grep -c '^reel: error: ' err)" -eq 1 ] || fail "$last: there is not one error line"
    has err '  remedy: '
    is_empty out
    n_check=$((n_check + 1))
    [ -z "$(find . -name '*.mp4*' -o -name '*.y4m*')" ] || fail "$last: a file was left"
}

# ---- help, version, pages --------------------------------------------------------------------------------------------------
run 0 --help; has out 'reel COMMAND'; is_empty err
run 0 -h; has out generate
run 0 help; has out completion
run 0 --version; has out 'reel '; is_empty err
for command in generate inspect plan devices encode decode bench completion help; do
    run 0 "$command" --help; has out "reel $command"; is_empty err
    cp out help_text
    run 0 help "$command"
    check "help $command and $command --help differ" cmp out help_text
done
run 0 generate --help --nonsense; has out '--guidance-scale'
awk 'length($0) > 110' out | grep -q . && fail "generate --help has overlong lines"
run 0 --options-md; check "docs/options.md is old: reel --options-md > docs/options.md" cmp out "$source_dir/docs/options.md"
run 0 --exit-codes-md; check "docs/exit-codes.md is old: reel --exit-codes-md > docs/exit-codes.md" cmp out "$source_dir/docs/exit-codes.md"
run 0 --man; has out '.TH REEL 1'; has out '\-\-guidance\-scale'
if command -v man >/dev/null && command -v groff >/dev/null; then
    cp out reel.1
    check "the manual page has troff warnings" bash -c 'test -z "$(man --warnings -l -E UTF-8 -Tutf8 ./reel.1 2>&1 >/dev/null)"'
fi

# ---- errors of the command line ------------------------------------------------------------------------------------------------
refused 2 'there is no command'
refused 2 'did you mean generate?' genrate
refused 2 'an option stands where a command belongs' --steps 3
refused 2 'did you mean --steps?' generate --setps 3
refused 2 'repeated' generate --steps 3 --steps 4
refused 2 'contradict' generate --size 32x32 --resolution 480p
refused 2 'needs a value' generate --prompt
refused 2 'stands alone' generate a red circle
refused 2 'there is no prompt' generate -o a.mp4
refused 2 'there is no output' generate --prompt a
refused 2 'contradict' generate --prompt a -o - --json
refused 2 'contradict' generate --prompt a -o - --no-clobber
refused 2 'contradict' generate --prompt a -o - --sidecar
refused 2 'no model to inspect' inspect
refused 2 'one thing at a time' encode -o a.safetensors
refused 2 'does not belong here' encode --prompt a --vae-dtype f32 -o a.safetensors
refused 2 'no latents to decode' decode -o a.mp4
refused 2 'no such command to explain' help genrate
refused 2 'three shells' completion csh
refused 2 '--repeats' bench --repeats 0
refused 2 '--threads' devices --threads -4
refused 2 '--threads' generate --prompt a -o a.mp4 --threads 99999

# ---- errors of values, files and models -----------------------------------------------------------------------------------------
for value in 0 -1 1000000000 x 1.5 ''; do refused 2 steps generate --prompt a -o a.mp4 --steps "$value"; done
for value in nan inf -1 1e9 x; do refused 2 guidance generate --prompt a -o a.mp4 --guidance-scale "$value"; done
for value in 18446744073709551616 x 1.5; do refused 2 seed generate --prompt a -o a.mp4 --seed "$value"; done
refused 2 dtype generate --prompt a -o a.mp4 --dtype f8
refused 2 'did you mean euler' generate --prompt a -o a.mp4 --scheduler eular
refused 4 'the nearest is euler' generate --prompt a -o a.mp4 --scheduler euler_a
refused 2 size generate --prompt a -o a.mp4 --size 33x32
refused 2 'byte 2 is 0xFF' generate --prompt $'a \xff' -o a.mp4
refused 3 'no-such-model' generate --prompt a -o a.mp4 --model no-such-model
refused 6 'missing.txt' generate --prompt-file missing.txt -o a.mp4
refused 6 'missing.json' generate --prompt a --config missing.json -o a.mp4
refused 6 'missing.mp4' generate --from missing.mp4 -o a.mp4
printf '\n  \n' >blank.txt
refused 2 'holds no prompt' generate --prompt-file blank.txt -o a.mp4
printf '{"setps": 3}' >bad.json
refused 2 'did you mean "steps"?' generate --prompt a --config bad.json -o a.mp4
printf '{"steps": 3' >bad.json
refused 2 'not valid JSON' generate --prompt a --config bad.json -o a.mp4
refused 6 'no-such-dir' generate --prompt a -o no-such-dir/a.mp4 --size 32x32 --frames 1 --steps 1
cp "$reel" ./alone
if ./alone generate --prompt a -o a.mp4 >out 2>err; then fail "a program without its model made a clip"; fi
last="a program away from its model"
has err 'share/reel/models/wan-tiny-t2v'
rm alone

# ---- reports --------------------------------------------------------------------------------------------------------------------
json_is_valid() { python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$1" 2>/dev/null; }
for arguments in "inspect $model" "devices" "plan --size 32x32 --frames 5"; do
    # shellcheck disable=SC2086
    run 0 $arguments; has out ': '
    # shellcheck disable=SC2086
    run 0 $arguments --json
    command -v python3 >/dev/null && check "$last: not JSON" json_is_valid out
done
run 0 plan --size 32x32 --frames 5; has out 'denoise'; has out 'MiB'
mkdir broken && cp "$model/model_index.json" broken/
run 3 inspect broken; has out 'problems'; has err 'reel: error: '

if [ -w /dev/full ]; then
    code=0
    "$reel" --help >/dev/full 2>err || code=$?
    last="reel --help to a full device"
    has err 'standard output could not be written'
    n_check=$((n_check + 1)); [ $code -eq 6 ] || fail "$last: exit code $code"
fi

# ---- completion -----------------------------------------------------------------------------------------------------------------
complete_words() { # words…: what bash offers for the last of them
    bash -c 'source <("$0" completion bash); COMP_WORDS=(reel "$@"); COMP_CWORD=$#; _reel; printf "%s\n" "${COMPREPLY[@]}"' "$reel" "$@" >out 2>err
    last="completion of $*"
    is_empty err
}
complete_words gen; has out generate
complete_words generate --guid; has out --guidance-scale; has out --guidance-scale-2
complete_words generate --dtype b; has out bf16
complete_words generate --resolution ''; has out 720p
complete_words inspect ''; has out broken
complete_words completion z; has out zsh
for shell in zsh fish; do
    run 0 completion $shell
    for flag in guidance-scale no-clobber x-dump repeats; do has out "$flag"; done
    command -v $shell >/dev/null && check "$shell does not take its completion" $shell -n out
done

# ---- clips ----------------------------------------------------------------------------------------------------------------------
tiny=(--size 32x32 --frames 5 --steps 2 --dtype f32)
run 0 generate "${tiny[@]}" --prompt 'a red circle' --seed 7 -o red.mp4
has err 'seed 7'; has err 'wrote red.mp4'; is_empty out
run 0 generate "${tiny[@]}" --prompt 'a red circle' --seed 7 -o again.mp4 -q
is_empty out; is_empty err
check "the same request gave other bytes" cmp red.mp4 again.mp4
run 0 generate --from red.mp4 -o from.mp4
check "--from gave other bytes" cmp red.mp4 from.mp4
run 0 generate --from red.mp4 --seed 8 -o other.mp4; has err "--seed 8 instead of the clip's"
n_check=$((n_check + 1)); cmp -s red.mp4 other.mp4 && fail "another seed gave the same clip"
run 0 plan --from red.mp4; has out 'denoise'
run 0 generate "${tiny[@]}" --prompt a -o random.mp4; has err '(random; give --seed to repeat)'
run 0 generate "${tiny[@]}" --prompt a --seed -1 -o negative.mp4; has err 'seed 18446744073709551615'

cp red.mp4 kept.mp4
run 6 generate "${tiny[@]}" --prompt b --no-clobber -o red.mp4; has err 'red.mp4'
check "--no-clobber changed the file" cmp red.mp4 kept.mp4

run 0 generate "${tiny[@]}" --prompt a --seed 1 -o -
n_check=$((n_check + 1)); [ "$(head -c 9 out)" = YUV4MPEG2 ] || fail "-o - did not write y4m alone"
run 0 generate "${tiny[@]}" --prompt a --seed 1 -o a.mp4 --json
n_check=$((n_check + 1)); grep -qv '^{"event":".*}$' out && fail "--json wrote a line that is no event"
has out '"event":"progress"'; has out '"event":"done"'; has out '"seed":"1"'
run 2 generate --prompt a --steps 0 -o b.mp4 --json; has out '"event":"error"'; has out '"exit_code":2'

printf '\xef\xbb\xbfone circle\r\n\n  two circles\nthree' >prompts.txt
run 0 generate "${tiny[@]}" --prompt-file prompts.txt --seed 5 -o many-%02d.mp4
for i in 00 01 02; do check "$last: many-$i.mp4 is missing" test -s many-$i.mp4; done
n_check=$((n_check + 1)); [ ! -e many-03.mp4 ] || fail "a blank line became a prompt"
printf 'one circle\n' | "$reel" generate "${tiny[@]}" --prompt-file - --seed 5 -o stdin.mp4 >out 2>err || fail "a prompt from standard input"
refused_several=$("$reel" generate "${tiny[@]}" --prompt a --prompt b -o one.mp4 2>&1); last="several clips into one name"
n_check=$((n_check + 1)); [ ! -e one.mp4 ] || fail "$last"
printf '%s' "$refused_several" >err; has err 'clip-%03d.mp4'

printf '{"size": "32x32", "frames": 5, "steps": 9, "dtype": "f32", "prompt": "a red circle", "seed": 7, "output": "config.mp4"}' >good.json
run 0 generate --config good.json --steps 2; has err 'wrote config.mp4'
check "settings of a file gave another clip" cmp red.mp4 config.mp4

# ---- stages on their own -------------------------------------------------------------------------------------------------------
run 0 encode red.mp4 -o red.safetensors; has err 'wrote red.safetensors'; is_empty out
run 0 decode red.safetensors -o back.mp4; check "$last: no clip" test -s back.mp4
run 0 decode red.safetensors --fps 30 -o -
n_check=$((n_check + 1)); head -1 out | grep -aq 'F30:1' || fail "$last: not 30 frames a second"
run 0 encode --prompt 'a red circle' --negative-prompt @wan -o text.safetensors -q; is_empty err
check "encode --prompt has no prompt_states" grep -aq prompt_states text.safetensors
run 0 generate "${tiny[@]}" --prompt a --seed 1 --x-dump dump
check "$last: no latents_final" grep -aq latents_final dump/*
run 6 encode missing.mp4 -o a.safetensors; has err 'missing.mp4'
run 2 decode text.safetensors -o a.mp4; has err 'latents'
run 0 bench --repeats 1 --json; has out '"samples'

# ---- a terminal: a bar that is redrawn, and a picture ----------------------------------------------------------------------------
n_check=$((n_check + 1))
quoted=$(printf '%q ' "$reel" generate "${tiny[@]}" --prompt a --seed 1 -o bar.mp4)
script -qec "stty cols 100; $quoted" /dev/null </dev/null >out 2>err || fail "a run on a terminal"
last="a run on a terminal"
has out $'\r\033[K['; has out '##'; has out 'denoise 2/2'; has out 'wrote bar.mp4'
script -qec "stty cols 100; $quoted --preview show" /dev/null </dev/null >out 2>err || fail "--preview show"
last="--preview show"
has out $'\xE2\x96\x80'; has out 'wrote bar.mp4'
run 2 generate "${tiny[@]}" --prompt a -o b.mp4 --preview show; has err 'no terminal'

# ---- stopping: whatever the moment, no file stays and the exit code names the signal ----------------------------------------------
for signal in INT:130 TERM:143 HUP:129; do
    # a shell gives its background jobs an ignored SIGINT, which the program respects; env sets it back
    env --default-signal=INT "$reel" generate --size 32x32 --frames 5 --steps 1000 --dtype f32 --prompt a --seed 1 -o stopped.mp4 >out 2>err &
    pid=$!
    sleep 1
    kill -s "${signal%:*}" $pid
    kill -s "${signal%:*}" $pid 2>/dev/null # a second one changes nothing
    code=0
    wait $pid || code=$?
    last="SIG${signal%:*}"
    n_check=$((n_check + 1))
    [ "$code" -eq "${signal#*:}" ] || fail "$last: exit code $code instead of ${signal#*:}"
    has err 'reel: error: cancelled'
    n_check=$((n_check + 1))
    [ -z "$(find . -name '*stopped*')" ] || fail "$last: a file was left"
done
run_broken_pipe() { "$reel" generate "${tiny[@]}" --prompt a -o - 2>err | true; echo "${PIPESTATUS[0]}" >code; }
run_broken_pipe
last="a reader that goes away"
n_check=$((n_check + 1))
case $(cat code) in 0 | 6) ;; *) fail "$last: exit code $(cat code)" ;; esac

echo "$n_check checks, $n_failed failed"
[ "$n_failed" -eq 0 ]
