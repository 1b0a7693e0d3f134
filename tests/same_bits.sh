#!/bin/sh
# Compares two builds of the program bit by bit on the CPU.
#
#     tests/same_bits.sh OLD NEW [SCENE…]
#
# OLD and NEW are two binaries; without scenes the small ones of the repository are taken. For each scene both render every
# sensor (2 samples a pixel) and write the gradients of `gradcheck`, and, where it optimises, run 5 iterations, whose
# final grids, values and splats are compared (`.npy`, of which the `.vol` beside it holds the same, and `.safetensors`). Exit code: 0 all alike, 1 something differs, 2 wrong use.

set -u
if [ $# -lt 2 ] || [ ! -x "$1" ] || [ ! -x "$2" ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
old=$1
new=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ]; then
    set -- "$root/scenes/smoke_small.json" "$root/scenes/two_blobs.json" "$root"/tests/data/peer/scenes/*.json
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
differs=0

# Runs one command with both builds, each with a folder of its own, and tells whether exit codes and files are alike.
# Usage: both NAME PATTERN… -- ARGUMENTS: patterns of paths in the folder, for which @ stands in the arguments.
both() {
    name=$1
    shift
    patterns=
    while [ "$1" != -- ]; do
        patterns="$patterns $1"
        shift
    done
    shift
    for build in old new; do
        eval "program=\$$build"
        folder=$work/$build
        rm -rf "$folder"
        mkdir -p "$folder"
        # shellcheck disable=SC2046
        "$program" $(printf '%s\n' "$@" | sed "s|@|$folder|") >"$folder.log" 2>&1
        echo $? >"$folder.code"
        (
            cd "$folder" || exit
            set -f
            for pattern in $patterns; do
                find . -type f -path "./$pattern"
            done | sort | xargs -r sha256sum
        ) >"$folder.sums"
    done
    if ! cmp -s "$work/old.code" "$work/new.code"; then
        echo "DIFFERS: $name: exit codes $(cat "$work/old.code") and $(cat "$work/new.code")"
        tail -n 3 "$work/new.log"
        differs=1
    elif ! cmp -s "$work/old.sums" "$work/new.sums"; then
        echo "DIFFERS: $name"
        diff "$work/old.sums" "$work/new.sums"
        differs=1
    elif [ ! -s "$work/new.sums" ]; then
        echo "NOTHING: $name wrote no file (exit code $(cat "$work/new.code")): $(tail -n 1 "$work/new.log")"
        differs=1
    else
        echo "same: $name: $(wc -l <"$work/new.sums") files"
    fi
}

for scene in "$@"; do
    short=$(basename "$scene" .json)
    both "$short: images" '*.exr' -- render "$scene" --device cpu --sensor all --spp 2 --output @/all
    both "$short: gradients" '*.npy' -- gradcheck "$scene" --device cpu --entries 1 --write @
    if grep -q '"optimize"' "$scene"; then
        both "$short: final" 'run/final/*.npy' 'run/final/*.exr' 'run/final/*.json' 'run/final/*.safetensors' -- \
            optimize "$scene" --device cpu --iterations 5 --output @/run
    fi
done
exit $differs
