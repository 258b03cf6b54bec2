#!/usr/bin/env python3
"""Measures encoding and decoding against zfec, in turn, on one thread, and prints ratios.

    python3 bench/against_zfec.py [--gate 4]

Bytes of payload a second. Both make the same kind of shards of the same data: k blocks in, m recovery blocks out; and
whole data in, k + m shards out, as zfec.easyfec does. The medians of rounds in turn are compared, so that what else
the machine does hits both. With --gate the exit code is 1 if encoding from blocks is not so many times as fast as
zfec in each line.
"""

import argparse
import os
import statistics
import sys
import time

import zfec
import zfec.easyfec

import fecshards

LINES = [(3, 2), (10, 4), (33, 67), (128, 128)]
MIB = 1 << 20


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def compare(ours, theirs, payload, rounds):
    """Median rates in MiB/s of both, and their ratio."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    rates = [payload / MIB / statistics.median(times) for times in zip(*pairs)]
    return rates[0], rates[1], rates[0] / rates[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bytes", type=int, default=16 * MIB, help="bytes of payload")
    parser.add_argument("--gate", type=float)
    args = parser.parse_args()
    data, slow = os.urandom(args.bytes), False
    print(f"{args.bytes / MIB:g} MiB of payload, medians of {args.rounds} rounds in turn, MiB/s\n")
    print(f"{'code':>9}  {'':20}{'fecshards':>10}{'zfec':>8}{'ratio':>8}")
    for k, m in LINES:
        code = fecshards.Code(k, m)
        theirs, easy = zfec.Encoder(k, k + m), zfec.easyfec.Encoder(k, k + m)
        size = code.shard_len(len(data))
        blocks = [data[index * size : (index + 1) * size].ljust(size, b"\0") for index in range(k)]
        shards = blocks + code.recovery(blocks)
        # As many originals are lost as can be.
        kept = list(range(min(k, m), k)) + list(range(k, k + min(k, m)))
        present = {index: shards[index] for index in kept}
        other = blocks + theirs.encode(blocks, list(range(k, k + m)))
        decoder, given = zfec.Decoder(k, k + m), [other[index] for index in kept]
        assert decoder.decode(given, kept) == blocks and code.decode(present, len(data)) == data
        lines = [
            ("encode, blocks", lambda: code.recovery(blocks), lambda: theirs.encode(blocks, list(range(k, k + m)))),
            ("encode, data", lambda: code.encode(data), lambda: easy.encode(data)),
            ("decode", lambda: code.decode(present, len(data)), lambda: b"".join(decoder.decode(given, kept))),
        ]
        for name, own, other in lines:
            rate, their_rate, ratio = compare(own, other, len(data), args.rounds)
            print(f"{f'{k} + {m}':>9}  {name:20}{rate:10.0f}{their_rate:8.0f}{ratio:8.1f}")
            slow |= name == "encode, blocks" and args.gate is not None and ratio < args.gate
    if slow:
        sys.exit(f"encoding is not {args.gate:g} times as fast as zfec")


if __name__ == "__main__":
    main()
