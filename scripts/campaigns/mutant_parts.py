#!/usr/bin/env python3
"""Parts of the code that mutants.sh and mutants_at_once.py put small faults into, and the tests that have to notice.

    scripts/campaigns/mutant_parts.py                     names the parts
    scripts/campaigns/mutant_parts.py PART                tells a shell the crate, the files and the tests of a part
    scripts/campaigns/mutant_parts.py --sample N SEED     takes N of the faults on standard input, each as a regex

A sample is the same as long as the faults are, wherever their lines have moved to: a fault that comes or goes changes
one of the sample, not all.
"""
import hashlib
import re
import shlex
import sys
from collections import Counter

# Crate and files of each part.
FILES = {
    "merkle": ("fec-core", "merkle.rs"),
    "params": ("fec-core", "params.rs", "params/**"),
    "format": ("fec-core", "format/**"),
    "set": ("fec-core", "set/**"),
    "window": ("fec-core", "window/**"),
    "choose": ("fecfile", "choose.rs"),
    "restore": ("fecfile", "restore.rs"),
    "pipe": ("fecfile", "pipe.rs", "pipe/**"),
    "range": ("fecfile", "range.rs"),
    "keep": ("fecfile", "keep.rs"),
    "sets": ("fecfile", "sets.rs"),
    "archive": ("fecfile", "archive.rs"),
    "seal": ("fecfile", "seal/**"),
    "output": ("fec-base", "io/output.rs", "io/output/**"),
    "sidecar": ("fec-sidecar", "**"),
    "stores": ("fec-stores", "**"),
    "live": ("fec-live", "**"),
}
# Left out, by file: compiled with the feature trace alone; needs servers.
WITHOUT = {"window": ["window/encoder/trace.rs"], "stores": ["cloud/**"]}

CLI = [("environment", ""), ("redirects", ""), ("repair", ""), ("words", ""), ("leftovers", ""), ("syncs", ""), ("cli", ""),
       ("keep", ""), ("hostile", ""), ("seal", ""), ("sign", ""), ("reports", ""), ("campaign", ""), ("encodings", ""),
       ("golden", "")]
# Parts of fecfile that are tested by the crate alone.
ENCODINGS = [("fecfile", "{part}::"), ("fecfile", ""), ("encodings", ""), ("guide", "")]
# Tests that have to notice, the quickest first: test binary, filter.
STAGES = {
    "merkle": [("fec_core", "merkle"), ("set", "")],
    "params": [("fec_core", "params"), ("format", "")],
    "format": [("vectors", ""), ("layouts", ""), ("fec_core", "format"), ("format", "")],
    "set": [("set", ""), ("fec_core", "set")],
    "window": [("fec_core", "window"), ("vectors", "streams"), ("window", "")],
    **{part: [("fecfile", "{part}::"), *CLI] for part in ("choose", "restore")},
    **{part: ENCODINGS for part in ("pipe", "range", "keep", "sets", "archive", "seal")},
    "output": [("fec_base", "{part}::"), *CLI],
    "sidecar": [("fec_sidecar", ""), *(("sidecars", of) for of in ("damage::", "guards::", "proof::", "update", ""))],
    "stores": [("fec_stores", ""), ("memory", "")],
    "live": [("fec_live", ""), ("vectors", ""), ("network", "")],
}
# Tests that run at the same time, where they wait more than they work.
THREADS = {"stores": 16, "live": 16}
# Tests for what those miss.
CORE = [("set", ""), ("fec_core", ""), ("simple", ""), ("window", ""), ("fecfile", ""), ("encodings", ""),
        ("sidecars", "golden"), ("golden", ""), ("seal_golden", ""), ("stream_golden", ""), ("cli", ""), ("hostile", "")]
AGAIN = {part: CORE for part, (crate, *_) in FILES.items() if crate == "fec-core"}
AGAIN |= {part: [("fecfile", ""), ("encodings", ""), ("sidecars", ""), ("sidecar", "")] for part in ("choose", "restore", "output")}
AGAIN["window"] = [("fec_live", ""), ("stream_golden", "")]
# Binaries of tests that are of one crate whatever the part. The others are of fec-cli, or of the crate of the part.
LIBS = {"fec_core": "fec-core", "fec_base": "fec-base", "fec_live": "fec-live", "fecfile": "fecfile",
        "fec_sidecar": "fec-sidecar", "fec_stores": "fec-stores"}
TESTS = {"encodings": "fecfile", "guide": "fecfile", "sidecars": "fec-sidecar", "memory": "fec-stores",
         "network": "fec-live"}
CORE_TESTS = {"set", "simple", "window", "format", "layouts"}


def crate_of(test, part):
    """The crate of a test binary that a part names."""
    if test == "vectors":
        return "fec-live" if part == "live" else "fec-core"
    return LIBS.get(test) or TESTS.get(test) or ("fec-core" if test in CORE_TESTS else "fec-cli")


def sampled(names, count, seed):
    """The positions of `count` of these names of faults, in order."""
    seen, keys = Counter(), []
    for at, name in enumerate(names):
        name = re.sub(r":\d+:\d+:", ":", name, count=1)
        seen[name] += 1
        keys.append((hashlib.sha256(f"{seed} {name} {seen[name]}".encode()).digest(), at))
    return sorted(at for _, at in sorted(keys)[:count])


def shell(part):
    """Assignments for a shell."""
    crate, *files = FILES[part]
    source = f"crates/{crate}/src/"
    own = {test for test, _ in STAGES[part] + AGAIN.get(part, []) if crate_of(test, part) == crate}
    words = ["--lib"]
    for test in sorted(own - LIBS.keys()):
        words += ["--test", test]
    arrays = {"files": [source + file for file in files], "without": [source + file for file in WITHOUT.get(part, [])], "tests": words}
    return "\n".join([f"package={crate}", *(f"{name}=({shlex.join(words)})" for name, words in arrays.items())])


def main():
    match sys.argv[1:]:
        case []:
            print("\n".join(FILES))
        case ["--sample", count, seed]:
            names = sys.stdin.read().splitlines()
            for at in sampled(names, int(count), seed):
                print(f"^{re.escape(names[at])}$")
        case [part] if part in FILES:
            print(shell(part))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
