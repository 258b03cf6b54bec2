#!/bin/bash
# fec and the independent implementation of live streams (scripts/oracle stream) swap work on random data.
#
#   scripts/checks/cross-check-stream.sh [FEC]
#
# FEC is the binary; without it one is built. For every profile and a few random settings: each restores what the other
# sent, the other recomputes every repair packet that fec made (those of timers and of the end too), and both read the
# same lossy stream.
#
#   FEC_SEED     number that settings, payloads and losses follow from; printed, random if unset
#   FEC_ROUNDS   settings for each profile; 3 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# -le 1 ] || usage

fec=$(find_fec "$@")
oracle=$root/scripts/oracle
seed=${FEC_SEED:-$((RANDOM << 15 | RANDOM))}
rounds=${FEC_ROUNDS:-3}
RANDOM=$((seed % 32768))

make_scratch
cd "$scratch"
echo "cross-check of streams: seed $seed"

# same A B WHAT
same() { cmp "$1" "$2" || { echo "differs: $3" >&2; exit 1; }; }

key=$scratch/key
"$fec" keygen -q --stream -o "$key"
checks=0
for profile in bounded classic classic-blocks blocks; do
    for ((round = 0; round < rounds; round++)); do
        packet=$((16 + RANDOM % 200)) window=$((8 + RANDOM % 400)) source=$((1 + RANDOM % 8))
        block=$((window / 4)) bytes=$((RANDOM + 1)) id=$(printf '%x' $((RANDOM + 1)))
        [ "$block" -le 30 ] || [ "$profile" = bounded ] || [ "$profile" = classic ] || block=30
        settings=(--profile "$profile" --window "$window" --block "$block" --packet "$packet" --rate "1/$source" --stream-id "$id")
        what="${settings[*]}, $bytes bytes"
        python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[1])).randbytes(int(sys.argv[2])))' $((seed + checks)) "$bytes" > payload

        # A file that is read without pause: no timer, and so the same bytes.
        "$fec" encode -q --stream "${settings[@]}" --flush-ms 60000 payload -f -o ours
        real_block=$("$fec" decode --json -f ours -o back | python3 -c 'import json, sys; print(json.load(sys.stdin)["block"])')
        same payload back "fec reads its own stream: $what"
        for ((i = 0; i < ${#settings[@]}; i++)); do [ "${settings[i]}" != --block ] || settings[i + 1]=$real_block; done
        python3 "$oracle" stream encode "${settings[@]}" -o theirs payload
        same ours theirs "the streams: $what"
        python3 "$oracle" stream decode -o back ours 2> log
        same payload back "the other reads: $what"

        # Sealed, by both ciphers.
        python3 "$oracle" stream encode --key-file "$key" "${settings[@]}" -o theirs payload
        "$fec" decode -q --key-file "$key" -f -o back theirs
        same payload back "fec opens what the other sealed: $what"
        for cipher in aes-256-gcm chacha20-poly1305; do
            head -c 3000 payload | "$fec" encode -q --stream --key-file "$key" --cipher "$cipher" --profile "$profile" --packet 300 > sealed
            python3 "$oracle" stream decode --key-file "$key" -o back sealed 2> log
            head -c 3000 payload | cmp - back || { echo "the other does not open what fec sealed: $cipher, $what" >&2; exit 1; }
        done

        # Losses that nearly all can be mended: both deliver the same packets.
        "$fec" encode -q --stream "${settings[@]}" --impair "random:0.0$((1 + RANDOM % 9)),reorder:4,dup:0.1,seed:$RANDOM" payload -f -o lossy
        ours=0 theirs=0
        "$fec" decode -q -f --stream lossy -o back.ours 2> log || ours=$?
        python3 "$oracle" stream decode -o back.theirs lossy 2> log || theirs=$?
        if [ "$ours" = 0 ]; then
            same payload back.ours "mended: $what"
        fi
        # The other has no window: what it cannot mend, nobody can.
        if [ "$theirs" != 0 ] && [ "$ours" = 0 ]; then
            echo "only fec mends, with exit codes $ours and $theirs: $what" >&2
            exit 1
        fi

        # A slow stream: timers make rows beyond the ratio.
        part() { dd if=payload bs=100 skip="$1" count="$2" status=none; }
        { part 0 7; sleep 0.05; part 7 9; sleep 0.05; part 16 90; } |
            "$fec" encode -q --stream "${settings[@]}" --flush-ms 10 > slow
        python3 "$oracle" stream verify slow > log || { cat log; echo "rows differ: $what" >&2; exit 1; }
        checks=$((checks + 1))
    done
done
echo "$checks settings, and the streams of both are the same"
