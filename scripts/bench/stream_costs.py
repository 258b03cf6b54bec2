#!/usr/bin/env python3
"""Measures the costs of live streams: bytes sent for slow inputs, and processor time of sealing.

    stream_costs.py --fec BIN slow [SECONDS]           inputs that come a little at a time, through a pipe
    stream_costs.py --fec BIN sealed [ROUNDS [MBPS]]   over loopback, in the clear and sealed, in random order: medians

The script prints tables. It needs Python 3.9, nothing else.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HEADER, MARK = 42, 40
PAYLOAD = 1150                                      # what --packet auto is for sealed packets over a network

# (name, options, bytes of each write, writes a second)
SLOW = (
    ("2 Mb/s", [], 1250, 200),
    ("1 Mb/s", [], 1250, 100),
    ("128 kb/s in 320 bytes", [], 320, 50),
    ("128 kb/s in 320 bytes, --packet 320", ["--packet", "320"], 320, 50),
    ("50 lines of 11 bytes a second", [], 11, 50),
    ("a line of 11 bytes a second", [], 11, 1),
    ("single bytes, --flush-ms 0", ["--flush-ms", "0"], 1, 200),
)


def slow(fec, seconds):
    """Bytes of packets for bytes of payload, and bytes of repair packets for what --rate gives."""
    print("| input | sent / payload | repair / (rate x source) | source packets | repair packets |\n|---|---|---|---|---|")
    for name, options, size, writes in SLOW:
        command = [fec, "encode", "--stream", "--json", *options, "-o", "/dev/null"]
        sender = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        for i in range(int(seconds * writes)):
            time.sleep(max(0, start + i / writes - time.monotonic()))
            sender.stdin.write(b"x" * size)
            sender.stdin.flush()
        sender.stdin.close()
        told = json.loads(sender.stdout.read())
        sender.wait()
        source = told["payload_bytes"] + HEADER * told["source_packets"]
        repair = told["sent_bytes"] - source - MARK * told["marks"]
        rows, packets = map(int, told["rate"].split("/"))
        share = repair / source * packets / rows
        print("| %s | %.2f | %.2f | %d | %d |" % (name, told["sent_bytes"] / told["payload_bytes"], share, told["source_packets"], told["repair_packets"]), flush=True)


def sealed(fec, rounds, mbps):
    """Processor time of sender and receiver for a packet of any kind."""
    with tempfile.TemporaryDirectory() as folder:
        key, data = os.path.join(folder, "key"), os.path.join(folder, "data")
        size = int(min(300e6, mbps * 1e6 / 8 * 4))
        subprocess.run([fec, "keygen", "-q", "--stream", "-o", key], check=True)
        with open(data, "wb") as f:
            f.write(os.urandom(size))
        times = {False: [], True: []}
        for _ in range(rounds):
            for is_sealed in random.sample([False, True], 2):
                options = ["--key-file", key] if is_sealed else []
                receive = [fec, "decode", "udp://127.0.0.1:0", *options, "-o", "/dev/null", "-f", "--json", "--stats", "json"]
                receiver = subprocess.Popen(receive, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                address = json.loads(receiver.stderr.readline())["address"]
                send = [fec, "encode", "--stream", "-q", "--packet", str(PAYLOAD), "--mbps", str(mbps), *options, "-o", address, data]
                sender = subprocess.Popen(send)
                used = []
                receiver.stderr.read()
                for process in (sender, receiver):
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    if process.returncode:
                        sys.exit("%s: exit code %d" % (process.args[1], process.returncode))
                    used.append((usage.ru_utime + usage.ru_stime) / (size / PAYLOAD * 7 / 6) * 1e6)
                times[is_sealed].append(used)
        print("| %g Mb/s, microseconds a packet | clear | sealed | ratio |\n|---|---|---|---|" % mbps)
        for i, name in enumerate(("sender", "receiver")):
            clear, under_seal = (statistics.median(x[i] for x in times[k]) for k in (False, True))
            print("| %s | %.2f | %.2f | %.2f |" % (name, clear, under_seal, under_seal / clear))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", default="target/release/fec")
    parser.add_argument("what", choices=("slow", "sealed"))
    parser.add_argument("numbers", nargs="*", type=float)
    options = parser.parse_args()
    fec, numbers = os.path.realpath(options.fec), options.numbers
    if options.what == "slow":
        slow(fec, numbers[0] if numbers else 20)
    else:
        sealed(fec, int(numbers[0]) if numbers else 7, numbers[1] if len(numbers) > 1 else 200)


if __name__ == "__main__":
    main()
