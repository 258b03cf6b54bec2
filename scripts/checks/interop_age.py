#!/usr/bin/env python3
"""fec and another implementation of age, both ways: what fec seals, `age -d` gets the content key of; what age wraps,
fec opens.

    interop_age.py --fec BIN [--age PROGRAM] [--age-keygen PROGRAM] [--rounds N] [--seed S]

For each kind of key that this age knows (X25519, ssh-ed25519, and of Go's age from 1.3 on the hybrid post-quantum ones)
N files go each way: keys by fec's keygen, age-keygen and ssh-keygen in turn, one to three recipients of which any opens
it, both ciphers, containers and shard files. The content key that age gives has to open the payload by scripts/oracle;
and that makes the payload around the age file that age made. Ends with 1 if anything fails, and with 2 if there is no
age. Python 3.9, nothing else.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from oracle import encoding, seal as oracle_seal


def run(command, given=None):
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError("%s: exit code %d\n%s" % (" ".join(command), done.returncode, done.stderr.decode(errors="replace")))
    return done.stdout


class Keys:
    """Makes keys of one kind, by whoever makes such."""

    def __init__(self, kind, args, folder):
        self.kind, self.args, self.folder, self.count = kind, args, folder, 0

    def new(self):
        """(file of the identity, recipient)"""
        self.count += 1
        path = os.path.join(self.folder, "%s-%d" % (self.kind, self.count))
        if self.kind == "ssh-ed25519":
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a comment", "-f", path])
            with open(path + ".pub") as f:
                return path, f.read().strip()
        hybrid = self.kind == "hybrid"
        if self.count % 2:
            run([self.args.fec, "keygen", "-q", "-o", path] + ["--pq"] * hybrid)
        else:
            run([self.args.age_keygen, "-o", path] + ["-pq"] * hybrid)
        with open(path) as f:
            lines = [line for line in f if line.startswith("# public key: ")]
        return path, lines[0].split(": ", 1)[1].strip()


def blobs_of(path):
    if os.path.isfile(path):
        files = [path]
    else:
        files = sorted(os.path.join(path, name) for name in os.listdir(path))
    blobs = []
    for name in files:
        with open(name, "rb") as f:
            blobs.append((name, f.read()))
    return blobs, os.path.isdir(path)


def from_fec(args, keys, rng, folder):
    """fec seals, age opens."""
    pairs = [keys.new() for _ in range(rng.randint(1, 3))]
    plain = rng.randbytes(rng.choice((0, 1, rng.randint(2, 3000))))
    source, target = os.path.join(folder, "in"), os.path.join(folder, rng.choice(("out.fec", "out")))
    with open(source, "wb") as f:
        f.write(plain)
    output = target if target.endswith(".fec") else target + "/"
    command = [args.fec, "encode", source, "-q", "-f", "-o", output, "-k", "3", "-m", "2", "--set-size", "12K"]
    command += ["--cipher", rng.choice(("aes-256-gcm", "chacha20-poly1305"))]
    run(command + [word for _, recipient in pairs for word in ("--recipient", recipient)])
    data, marked, sealed, _ = oracle_seal.sealed_of(*blobs_of(target))
    assert marked
    seal = oracle_seal.parse_seal(data)
    for identity, _ in pairs:
        content_key = run([args.age, "-d", "-i", identity], seal.age)
        assert len(content_key) == 32
        name = encoding.check_meta(oracle_seal.open_private(seal, content_key)).get(2)
        assert name == (None if target.endswith(".fec") else b"in")
        assert oracle_seal.open_payload(content_key, seal, sealed) == plain


def from_age(args, keys, rng, folder):
    """age wraps a content key, fec opens what is sealed with it."""
    pairs = [keys.new() for _ in range(rng.randint(1, 3))]
    plain = rng.randbytes(rng.choice((0, 1, rng.randint(2, 3000))))
    content_key, cipher = rng.randbytes(32), rng.choice((1, 2))
    age_file = run([args.age] + [word for _, recipient in pairs for word in ("-r", recipient)], content_key)
    seal = oracle_seal.make_seal(content_key, cipher, age_file, encoding.entry(2, b"name"))
    sealed = oracle_seal.seal_payload(content_key, cipher, seal, plain)
    form = rng.choice((encoding.SHARDS, encoding.CONTAINER))
    files, _ = encoding.encode(form, encoding.BLAKE3, 3, 2, sealed, set_size=12288, meta=encoding.entry(9, seal), flags=16)
    target = os.path.join(folder, "made")
    if form == encoding.SHARDS:
        os.mkdir(target)
    for number, data in enumerate(files):
        with open(os.path.join(target, "%03d" % number) if form == encoding.SHARDS else target, "wb") as f:
            f.write(data)
    for identity, _ in pairs:
        assert run([args.fec, "decode", target, "-q", "-i", identity, "-o", "-"]) == plain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--age", default="age")
    parser.add_argument("--age-keygen", default="age-keygen")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=16)
    args = parser.parse_args()
    args.fec = os.path.abspath(args.fec)
    try:
        version = run([args.age, "--version"]).decode().strip()
    except OSError as error:
        print("NOT TESTED: no age here: %s" % error)
        return 2
    kinds = ["x25519", "ssh-ed25519"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run([args.age_keygen, "-pq", "-o", os.path.join(folder, "try")])
            kinds.append("hybrid")
        except RuntimeError:
            print("hybrid: NOT TESTED: age %s has no such keys" % version)
    rng, failed = random.Random(args.seed), 0
    for kind in kinds:
        for name, way in (("fec seals, age opens", from_fec), ("age wraps, fec opens", from_age)):
            good = 0
            for nth in range(args.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        way(args, Keys(kind, args, folder), rng, folder)
                        good += 1
                    except (AssertionError, RuntimeError, encoding.Fault) as error:
                        print("%s, %s, file %d: %r" % (kind, name, nth, error))
            print("%s: %s: %d of %d" % (kind, name, good, args.rounds))
            failed += args.rounds - good
    print("age %s: %s" % (version, "all agree" if not failed else "%d failed" % failed))
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
