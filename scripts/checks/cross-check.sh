#!/bin/bash
# fec and the independent implementation (scripts/oracle) swap work on random data.
#
#   scripts/checks/cross-check.sh [FEC]
#
# FEC is the binary; without it one is built. For every shape both encode (the bytes must be equal), each restores and
# verifies what the other wrote, and both read the same damaged copies: they must agree on the exit code of verify and
# decode, with and without the root, and whatever is restored must be the payload. Each opens what the other sealed, in
# stores too (scripts/oracle seal).
#
#   FEC_SEED     number that the payloads and the damage follow from; printed, random if unset
#   FEC_ROUNDS   damaged copies of each kind and shape; 1 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# -le 1 ] || usage

fec=$(find_fec "$@")
oracle=$root/scripts/oracle
seed=${FEC_SEED:-$((RANDOM << 15 | RANDOM))}
rounds=${FEC_ROUNDS:-1}

make_scratch
cd "$scratch"
echo "cross-check: seed $seed"

# Damage to a copy. m shards, or the redundancy of a container, can bear `light` damage and cannot bear `heavy` damage:
# each kind of damage meets files that can just be restored, and files that cannot.
cat > damage.py <<'PYTHON'
import os, random, sys

path, kind, k, m, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
rng = random.Random(seed)
kind, strength = kind.split("-")
names = sorted(os.path.join(path, x) for x in os.listdir(path)) if os.path.isdir(path) else [path]


def hurt(data, share):
    """Damages about `share` of the bytes in a few places."""
    data = bytearray(data)
    if kind == "flip":
        for _ in range(max(1, int(len(data) * share / 2000))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return data
    for _ in range(rng.randint(1, 3)):
        size = max(1, int(len(data) * share * rng.random() / 2))
        at = rng.randrange(max(1, len(data) - size))
        if kind == "hole":
            data[at:at + size] = bytes(size)
        elif kind == "delete":
            del data[at:at + size]
        elif kind == "insert":
            data[at:at] = rng.randbytes(size)
        elif kind == "cut":
            del data[len(data) - size:]
    return data


if len(names) == 1:
    chosen, share = names, (m / (k + m) if strength == "light" else min(1, 2 * m / (k + m) + 0.3))
    share *= 0.7
else:
    count = m if strength == "light" else m + 1 + rng.randrange(max(1, (k + 1) // 2))
    chosen, share = rng.sample(names, min(len(names), count)), rng.choice([0.01, 0.3, 0.9])
for name in chosen:
    with open(name, "rb") as f:
        data = f.read()
    if kind == "lose":
        if len(names) > 1:
            os.remove(name)
            continue
        # The front of a container goes.
        data = data[int(len(data) * share * rng.random()):]
    else:
        data = hurt(data, share)
    with open(name, "wb") as f:
        f.write(data)
PYTHON

payloads=0 exchanges=0 copies=0 readings=0 disagreements=0
declare -A outcomes=()

disagree() {
    echo "$script: $* (FEC_SEED=$seed)" >&2
    disagreements=$((disagreements + 1))
}

# Runs a command quietly and leaves its exit code in $code.
try() {
    code=0
    "$@" > said 2> complained < /dev/null || code=$?
}

# Both read $1 with the options after it. Agreement means: the same exit code, and the payload if it is 0.
read_by_both() {
    local path=$1 command theirs
    shift
    for command in verify decode; do
        local fec_args=("$@") oracle_args=("$@")
        if [ "$command" = decode ]; then
            rm -f by-fec by-oracle
            fec_args+=(--no-sync -o by-fec)
            oracle_args+=(-o by-oracle)
        fi
        try python3 "$oracle" encoding "$command" "${oracle_args[@]}" "$path"
        theirs=$code
        try "$fec" "$command" -q "${fec_args[@]}" "$path"
        readings=$((readings + 1))
        # fec verifies each of several encodings in a folder by itself. The oracle ends with 2, as decode does: a root
        # has to name the encoding that is meant.
        if [ "$command:$theirs:$#" = verify:2:0 ] && [ -d "$path" ] && [ "$code" = 0 ]; then theirs=0; fi
        outcomes[$command:$code]=$((${outcomes[$command:$code]-0} + 1))
        if [ "$code" != "$theirs" ]; then
            disagree "$what: $command ${*:+with a root }ends with $code by fec, $theirs by the oracle"
            sed 's/^/    fec: /' complained >&2
        elif [ "$command:$code" = decode:0 ] && ! { cmp -s payload by-fec && cmp -s payload by-oracle; }; then
            disagree "$what: restored something else"
        fi
    done
}

# form hash k m payload bytes, then --set-size and --group-size
check_shape() {
    local form=$1 hash=$2 k=$3 m=$4 len=$5 root kind round copy other
    shift 5
    local shape="$form $hash $k+$m $len bytes $*"
    what=$shape
    payloads=$((payloads + 1))
    rm -rf ours theirs
    python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(sys.argv[1]).randbytes(int(sys.argv[2])))' \
        "$seed $shape" "$len" > payload
    [ "$form" = shards ] && other=ours/ || other=ours
    "$fec" encode -q --no-sync --hash "$hash" -k "$k" -m "$m" "$@" -o "$other" payload > root.fec
    python3 "$oracle" encoding encode --form "$form" --hash "$hash" -k "$k" -m "$m" "$@" -o theirs payload > root.oracle
    cmp -s root.fec root.oracle || disagree "$what: the roots differ"
    diff -r ours theirs > /dev/null || disagree "$what: the encodings differ"
    read -r root < root.oracle
    # Each reads what the other wrote, whole.
    try python3 "$oracle" encoding verify --root "$root" ours
    [ "$code" = 0 ] || disagree "$what: the oracle's verify ends with $code"
    try python3 "$oracle" encoding decode --root "$root" -o by-oracle ours
    if [ "$code" != 0 ] || ! cmp -s payload by-oracle; then disagree "$what: the oracle's decode ends with $code"; fi
    rm -f by-fec
    try "$fec" verify -q --deep --root "$root" theirs
    [ "$code" = 0 ] || disagree "$what: fec verify --deep ends with $code"
    try "$fec" decode -q --no-sync --root "$root" -o by-fec theirs
    if [ "$code" != 0 ] || ! cmp -s payload by-fec; then disagree "$what: fec decode ends with $code"; fi
    exchanges=$((exchanges + 4))
    # Another root than the one asked for, and two encodings side by side: ambiguous, unless one is asked for.
    what="$shape, another root"
    read_by_both theirs --root "${root:32}${root:0:32}"
    tr '\0-\377' '\1-\377\0' < payload > other
    if [ "$form" = shards ]; then
        cp -r theirs two
        python3 "$oracle" encoding encode --form "$form" --hash "$hash" -k "$k" -m "$m" "$@" -o two other > /dev/null
    else
        python3 "$oracle" encoding encode --form "$form" --hash "$hash" -k "$k" -m "$m" "$@" -o second other > /dev/null
        cat theirs second > two
    fi
    what="$shape, two encodings"
    read_by_both two
    read_by_both two --root "$root"
    rm -rf two second
    for kind in flip-light flip-heavy hole-light hole-heavy delete-light delete-heavy insert-light cut-heavy lose-light lose-heavy; do
        [ "$m" != 0 ] || [ "${kind#*-}" = heavy ] || continue
        for ((round = 0; round < rounds; round++)); do
            copy=damaged
            rm -rf "$copy"
            cp -r theirs "$copy"
            python3 damage.py "$copy" "$kind" "$k" "$m" "$seed $shape $kind $round"
            copies=$((copies + 1))
            what="$shape, $kind $round"
            # Alternate: with the root both must also tell another stream's records apart from none.
            if (((copies + round) % 2)); then read_by_both "$copy" --root "$root"; else read_by_both "$copy"; fi
        done
    done
}

# opens COMMAND…: the command has to end well, and to write the payload to by-other.
opens() {
    rm -f by-other
    try "$@"
    exchanges=$((exchanges + 1))
    if [ "$code" != 0 ] || ! cmp -s payload by-other; then
        disagree "$what: ${1##*/} ${2##*/} ends with $code"
        sed 's/^/    /' complained >&2
    fi
}

# form cipher payload bytes, then what opens it
check_sealed() {
    local form=$1 cipher=$2 len=$3 who=$4 other=ours numbers root
    what="sealed, $form, cipher $cipher, $len bytes, $who"
    local names=([1]=aes-256-gcm [2]=chacha20-poly1305)
    local mine=(-i identity) theirs=(--identity identity) for_whom=(--recipient "$recipient")
    if [ "$who" = passphrase ]; then
        mine=(--passphrase) theirs=(--passphrase "$FEC_PASSPHRASE") for_whom=(--passphrase)
    fi
    payloads=$((payloads + 1))
    rm -rf ours theirs place-*
    python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(sys.argv[1]).randbytes(int(sys.argv[2])))' \
        "$seed $what" "$len" > payload
    numbers=(-k 3 -m 2 --set-size 12288)
    if [ "$form" = stores ]; then
        "$fec" encode -q --no-sync "${numbers[@]}" --cipher "${names[$cipher]}" "${for_whom[@]}" --segment-size 40000 \
            --to place-1 --to place-2 --to place-3 payload > root.fec
        read -r root < root.fec
        opens python3 "$oracle" seal restore --root "$root" "${theirs[@]}" -o by-other place-1 place-2 place-3
        return
    fi
    if [ "$form" = shards ]; then other=ours/; fi
    "$fec" encode -q --no-sync "${numbers[@]}" --cipher "${names[$cipher]}" "${for_whom[@]}" -o "$other" payload > root.fec
    read -r root < root.fec
    opens python3 "$oracle" seal decode --root "$root" "${theirs[@]}" -o by-other ours
    root=$(python3 "$oracle" seal encode --form "$form" "${numbers[@]}" --cipher "$cipher" --name payload "${theirs[@]}" -o theirs payload)
    opens "$fec" decode -q --no-sync --deep --root "$root" "${mine[@]}" -o by-other theirs
}

check_shape shards blake3 1 1 1000
check_shape shards sha256 3 2 40000 --set-size 12288
check_shape shards sha256 10 4 100000 --set-size 40960
check_shape shards blake3 33 67 6000
check_shape shards blake3 7 0 60000 --set-size 28672
check_shape container sha256 2 3 60000 --set-size 8192 --group-size 3
check_shape container sha256 10 4 130000 --set-size 40960 --group-size 2
check_shape container blake3 5 5 70000 --set-size 20480 --group-size 3
check_shape container blake3 5 5 70000 --set-size 20480
check_shape container blake3 20 12 5000
check_shape container sha256 4 0 60000 --set-size 16384 --group-size 2

export FEC_PASSPHRASE="a passphrase $seed"
recipient=$("$fec" keygen -q -o identity)
check_sealed shards 1 0 identity
check_sealed shards 2 70000 identity
check_sealed container 1 66000 passphrase
check_sealed container 2 1 passphrase
check_sealed stores 1 90000 identity
check_sealed stores 2 70000 identity

echo "cross-check: $payloads payloads, $exchanges exchanges whole, $copies damaged copies, $readings readings by both"
for outcome in "${!outcomes[@]}"; do
    echo "cross-check:   ${outcome%:*} ends with ${outcome#*:}: ${outcomes[$outcome]} times"
done | sort
[ "$disagreements" = 0 ] || fail "$disagreements disagreements"
echo "cross-check: no disagreement"
