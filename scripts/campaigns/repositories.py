#!/usr/bin/env python3
"""Backup repositories over many nights, with the programs themselves: what is damaged has to come back.

    repositories.py --fec PATH [--seed S] [--cycles N] [--dir DIR] TOOL…

TOOL is restic, rustic, borg, git, annex. A cycle is a night: the tree to back up changes, scripts/release/fec-night.sh
runs the backup, every fourth time one that prunes too, and has to end with 0 and without a word. Every second night the
repository is damaged in one of the ways of DAMAGES, by as much as `fec verify` says it can stand, at most 14 % of its
bytes. Then, in turn:

  repair    `fec repair` alone, without --revert
  night     the next night finds it before the backup
  swallow   a backup and `fec protect --update` run first, as by somebody who never looks: the update has to tell

and the repository must be what it was, byte for byte, the program's own deep check must pass, and a restore must give
the tree. Between, an update runs while a backup does, a prune stands announced, and repairs look on. Run r of seed S is
run 0 of seed S + r. Exit codes: 0 nothing was found, 1 faults, 2 it cannot be run here.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from judge import Wrong, expect

NIGHT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "release", "fec-night.sh")
IGNORE = ["--ignore", "edited,moved,new,gone"]
SHARE = 0.14
WAYS = ("repair", "night", "swallow")


def files_of(folder):
    """The regular files by path, with their bytes."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
    return found


class Tool:
    """A backup program, its repository, and the tree that it backs up."""

    LEFT_OUT = ()
    KEEP = 3

    def mended(self):
        """Does by hand, after a repair, what the program needs."""

    def __init__(self, home, rng):
        self.home, self.rng, self.serial = home, rng, 0
        self.repo, self.tree = os.path.join(home, "repo"), os.path.join(home, "tree")
        self.env = dict(os.environ, HOME=home, LC_ALL="C.UTF-8")
        os.makedirs(self.tree)

    def call(self, *words, cwd=None, fine=(0,), quiet=True):
        done = subprocess.run(words, cwd=cwd or self.home, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in fine:
            raise Wrong("%s: %d\n%s%s" % (" ".join(words), done.returncode, done.stdout[-2000:], done.stderr[-2000:]))
        return done

    def grow(self, size):
        """New files, edits, and a deletion."""
        for _ in range(3):
            self.serial += 1
            with open(os.path.join(self.tree, "file%04d" % self.serial), "wb") as f:
                f.write(self.rng.randbytes(size // 3))
        names = sorted(os.listdir(self.tree))
        names = [name for name in names if name.startswith("file")]
        for name in self.rng.sample(names, 2):
            with open(os.path.join(self.tree, name), "r+b") as f:
                f.seek(self.rng.randrange(max(1, os.path.getsize(os.path.join(self.tree, name)) - 500)))
                f.write(self.rng.randbytes(400))
        if len(names) > 30:
            os.remove(os.path.join(self.tree, self.rng.choice(names)))

    def is_left_out(self, path):
        return any(part in path for part in self.LEFT_OUT)

    def bytes_now(self):
        return {path: data for path, data in files_of(self.repo).items() if not self.is_left_out(path)}


class Restic(Tool):
    name, policy, LEFT_OUT = "restic", None, ("locks/",)

    def make(self):
        self.env["RESTIC_PASSWORD"] = "pw"
        self.call("restic", "-q", "-r", self.repo, "init")

    def backup(self):
        return ["restic", "-q", "-r", self.repo, "backup", "--pack-size", "4", self.tree]

    def prune(self):
        return ["restic", "-q", "-r", self.repo, "forget", "--prune", "--keep-last", str(self.KEEP)]

    def check(self):
        self.call("restic", "-q", "-r", self.repo, "check", "--read-data")

    def restore(self, to):
        self.call("restic", "-q", "-r", self.repo, "restore", "latest", "--target", to)
        return os.path.join(to, self.tree.lstrip("/"))

    def packs(self):
        return [path for path in self.bytes_now() if path.startswith("data/")]

    def keys(self):
        return [path for path in self.bytes_now() if path == "config" or path.startswith("keys/")]


class Rustic(Restic):
    """The store of restic, by a program that indexes, packs and prunes in its own way (`cargo install rustic-rs`)."""

    name = "rustic"

    def make(self):
        self.env.update(RUSTIC_REPOSITORY=self.repo, RUSTIC_PASSWORD="pw", RUSTIC_NO_CACHE="true", RUSTIC_NO_PROGRESS="true", RUSTIC_LOG_LEVEL="error")
        self.call("rustic", "init", "--set-datapack-size", "4MiB")

    def backup(self):
        return ["rustic", "backup", self.tree]

    def prune(self):
        return ["rustic", "forget", "--prune", "--instant-delete", "--keep-last", str(self.KEEP)]

    def check(self):
        self.call("rustic", "check", "--read-data")

    def restore(self, to):
        self.call("rustic", "restore", "latest", to)
        return os.path.join(to, self.tree.lstrip("/"))


class Borg(Tool):
    name, policy, LEFT_OUT = "borg", None, ("lock.", "index.", "hints.", "integrity.", "nonce")

    def make(self):
        self.env.update(BORG_PASSPHRASE="pw", BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes", BORG_RELOCATED_REPO_ACCESS_IS_OK="yes")
        self.call("borg", "init", "-e", "repokey", self.repo)
        self.call("borg", "config", self.repo, "max_segment_size", "4194304")

    def backup(self):
        self.serial += 1
        return ["borg", "create", "-C", "none", "%s::a%d" % (self.repo, self.serial), self.tree]

    def prune(self):
        return ["sh", "-c", "borg prune --keep-last %d %s && borg compact --threshold 1 %s" % (self.KEEP, self.repo, self.repo)]

    def check(self):
        self.call("borg", "check", "--verify-data", self.repo)

    def restore(self, to):
        last = self.call("borg", "list", "--short", "--last", "1", self.repo).stdout.strip()
        os.makedirs(to)
        self.call("borg", "extract", "%s::%s" % (self.repo, last), cwd=to)
        return os.path.join(to, self.tree.lstrip("/"))

    def packs(self):
        return [path for path in self.bytes_now() if path.startswith("data/")]

    def keys(self):
        return ["config", "README"]

    def mended(self):
        """As the guide says: an index that a backup made without what was mended lacks it."""
        for name in os.listdir(self.repo):
            if name.startswith(("index.", "hints.", "integrity.")):
                os.remove(os.path.join(self.repo, name))


class Git(Tool):
    name, policy, LEFT_OUT = "git", "git", (".lock",)

    def make(self):
        for key, value in (("user.name", "x"), ("user.email", "x@x"), ("init.defaultBranch", "main"), ("gc.auto", "0"), ("core.compression", "0"), ("transfer.unpackLimit", "1"), ("pack.packSizeLimit", "4m")):
            self.call("git", "config", "--global", key, value)
        self.call("git", "init", "-q", "--bare", self.repo)
        self.call("git", "-C", self.repo, "config", "gc.auto", "0")
        self.call("git", "-C", self.tree, "init", "-q")
        self.call("git", "-C", self.tree, "remote", "add", "there", self.repo)

    def backup(self):
        return ["sh", "-c", "cd %s && git add -A && git commit -q --allow-empty -m x && git push -q there HEAD:main" % self.tree]

    def prune(self):
        return ["sh", "-c", "%s && git -C %s gc -q --prune=now" % (self.backup()[2], self.repo)]

    def check(self):
        self.call("git", "-C", self.repo, "fsck", "--full", "--strict")

    def restore(self, to):
        self.call("git", "clone", "-q", "--no-local", "-b", "main", self.repo, to)
        return to

    def packs(self):
        return [path for path in self.bytes_now() if path.startswith("objects/") and path.endswith((".pack", ".idx")) or path.count("/") == 2 and path.startswith("objects/") and len(path.split("/")[1]) == 2]

    def keys(self):
        return []


class Annex(Git):
    name, policy, LEFT_OUT = "annex", "annex", (".lock", ".lck", "annex/othertmp", "annex/journal")

    def make(self):
        super().make()
        self.call("git", "-C", self.tree, "annex", "init", "-q", "tree")
        self.call("git", "-C", self.repo, "annex", "init", "-q", "repo")

    def backup(self):
        return ["sh", "-c", "cd %s && git annex add -q . && git commit -q --allow-empty -m x && git annex sync -q --content there" % self.tree]

    def prune(self):
        return ["sh", "-c", "%s && cd %s && git annex unused -q >/dev/null && git annex dropunused -q --force all" % (self.backup()[2], self.repo)]

    def check(self):
        self.call("git", "-C", self.repo, "annex", "fsck", "-q", "--all")

    def restore(self, to):
        self.call("git", "clone", "-q", self.repo, to)
        self.call("git", "-C", to, "annex", "get", "-q", ".")
        return to

    def packs(self):
        return [path for path in self.bytes_now() if path.startswith("annex/objects/")]

    def grow(self, size):
        for name in os.listdir(self.tree):
            path = os.path.join(self.tree, name)
            if name.startswith("file") and os.path.islink(path):
                data = open(path, "rb").read()
                os.remove(path)
                with open(path, "wb") as f:
                    f.write(data)
        super().grow(size)


# ---------------------------------------------------------------- damage

def write(path, at, data):
    """Writes into a file that may be read-only, in a folder that may be."""
    folder = os.path.dirname(path)
    modes = [(x, os.stat(x).st_mode & 0o7777) for x in (folder, path)]
    for x, mode in modes:
        os.chmod(x, mode | 0o200)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)
    for x, mode in reversed(modes):
        os.chmod(x, mode)


def change(path, act):
    folder = os.path.dirname(path)
    mode = os.stat(folder).st_mode & 0o7777
    os.chmod(folder, mode | 0o200)
    act(path)
    os.chmod(folder, mode)


def some(tool, room):
    """Packs, whole, of at most so many bytes together."""
    packs, taken = sorted(tool.packs()), []
    tool.rng.shuffle(packs)
    for path in packs:
        size = os.path.getsize(os.path.join(tool.repo, path))
        if 0 < size <= room:
            taken.append(os.path.join(tool.repo, path))
            room -= size
    return taken


def cut(tool, room, keep):
    for path in some(tool, room):
        size = os.path.getsize(path)
        mode = os.stat(path).st_mode & 0o7777
        os.chmod(path, mode | 0o200)
        os.truncate(path, int(size * keep))
        os.chmod(path, mode)


def delete(tool, room):
    for path in some(tool, room):
        change(path, os.remove)


def overwrite(tool, room):
    for path in some(tool, room):
        write(path, 0, tool.rng.randbytes(os.path.getsize(path)))


def flip(tool, room):
    """Bits in 1 % of the blocks, and the times put back."""
    for path in tool.bytes_now():
        path = os.path.join(tool.repo, path)
        info = os.stat(path)
        blocks = (info.st_size + 4095) // 4096
        for block in tool.rng.sample(range(blocks), sum(tool.rng.random() < 0.01 for _ in range(blocks))):
            at = min(block * 4096 + tool.rng.randrange(4096), info.st_size - 1)
            with open(path, "rb") as f:
                f.seek(at)
                byte = f.read(1)[0]
            write(path, at, bytes([byte ^ 16]))
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def keys(tool, room):
    for path in tool.keys() or tool.packs()[:1]:
        write(os.path.join(tool.repo, path), 0, tool.rng.randbytes(min(100, os.path.getsize(os.path.join(tool.repo, path)))))


def sidecar(tool, room):
    """A run of a tenth, in the first half: that of the first generation. Without a root, nobody can tell the newest one
    where one between is lost as a whole."""
    path = tool.repo + ".fecp"
    size = os.path.getsize(path)
    write(path, tool.rng.randrange(4096, max(4097, size * 3 // 10)), bytes(size // 10))


DAMAGES = {
    "deleted": delete,
    "cut": lambda tool, room: cut(tool, room, 0.7),
    "emptied": lambda tool, room: cut(tool, room, 0),
    "overwritten": overwrite,
    "bits": flip,
    "keys": keys,
    "sidecar": sidecar,
}


# ---------------------------------------------------------------- nights

class Run:
    def __init__(self, fec, tool):
        self.fec, self.tool, self.sidecar = fec, tool, tool.repo + ".fecp"
        self.counts = dict(nights=0, damages=0, prunes=0, updates=0, least=1.0)

    def call(self, *words, fine=(0,)):
        return self.tool.call(self.fec, *words, fine=fine)

    def update(self, *words, fine=(0,)):
        self.counts["updates"] += 1
        return self.call("protect", "--update", *words, self.tool.repo, fine=fine)

    def night(self, command, *options, told=False):
        words = [NIGHT, *options, self.tool.repo, "--", *command]
        done = subprocess.run(words, cwd=self.tool.home, env=dict(self.tool.env, FEC=self.fec), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        expect(done.returncode == 0, "a night: %d\n%s%s" % (done.returncode, done.stdout[-3000:], done.stderr[-3000:]))
        expect(bool(done.stderr) == told or self.tool.name in ("git", "annex"), "a night said:\n%s" % done.stderr[-3000:])
        self.counts["nights"] += 1

    def room(self):
        """Bytes that may be lost: no more than fec says."""
        found = json.loads(self.call("--json", "verify", *IGNORE, self.sidecar).stdout)
        total = sum(map(len, self.tool.bytes_now().values()))
        room = min(int(total * SHARE), int(found["margin"]["any_bytes"] * 0.9))
        self.counts["least"] = min(self.counts["least"], room / total)
        return room

    def whole(self, before, what):
        now = self.tool.bytes_now()
        wrong = [path for path in before if now.get(path) != before[path] and (self.tool.policy is None or "objects/" in path)]
        expect(not wrong, "%s: not as before: %s" % (what, wrong[:5]))

    def judge(self, what):
        """The program's own check, and a restore."""
        try:
            self.tool.check()
            to = os.path.join(self.tool.home, "restored")
            place = self.tool.restore(to)
            mine, its = ({path: data for path, data in files_of(x).items() if path.startswith("file")} for x in (self.tool.tree, place))
            links = {name: open(os.path.join(self.tool.tree, name), "rb").read() for name in os.listdir(self.tool.tree) if name.startswith("file")}
            its = {name: open(os.path.join(place, name), "rb").read() for name in os.listdir(place) if name.startswith("file")}
            expect(links == its, "%s: the restore is another tree" % what)
            subprocess.run(["chmod", "-R", "u+w", to], check=True)
            shutil.rmtree(to)
        except Wrong as wrong:
            raise Wrong("%s: %s" % (what, wrong)) from None

    def damage(self, name, way):
        tool, what = self.tool, "%s, %s" % (name, way)
        room, before = self.room(), tool.bytes_now()
        DAMAGES[name](tool, room)
        # Where an area of the sidecar is small, no whole pack may be lost.
        if name != "sidecar" and tool.bytes_now() == before:
            return
        self.counts["damages"] += 1
        if way == "repair" or name in ("sidecar", "bits", "keys"):
            if name in ("cut", "emptied", "deleted"):
                expect(self.call("verify", "--quick", *IGNORE, self.sidecar, fine=(1,)), what)
            self.call("verify", *IGNORE, self.sidecar, fine=(1,))
            self.call("repair", self.sidecar)
            tool.mended()
        elif way == "night":
            self.night(tool.backup(), *(["--full"] if name == "overwritten" else []), told=True)
        else:
            # The backup does not look, and must not hide it.
            tool.call(*tool.backup(), fine=(0, 1, 2, 3))
            done = self.update(fine=(1,))
            expect("fec repair" in done.stdout + done.stderr, what + ": no advice:\n" + done.stdout + done.stderr)
            self.call("repair", self.sidecar)
            tool.mended()
            self.update()
        self.whole(before, what)
        self.call("verify", *IGNORE, self.sidecar)
        self.judge(what)

    def stand(self):
        """Nothing is damaged: no update, no prune and no repair may bring anything back, or cry."""
        tool = self.tool
        running = subprocess.Popen(tool.backup(), cwd=tool.home, env=tool.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while running.poll() is None:
            # Somebody is at work, or a file changed while it was read.
            done = self.update(fine=(0, 1, 4))
            expect(done.returncode != 1 or "changed while it was read" in done.stdout + done.stderr, done.stderr)
        self.call("repair", self.sidecar, fine=(0, 1))
        tool.call(*tool.backup())
        self.call("verify", *IGNORE, self.sidecar)                      # one backup behind
        self.update()
        self.update("--pruning")
        tool.call(*tool.prune())
        before = sorted(files_of(tool.repo))
        self.call("verify", *IGNORE, self.sidecar)
        # Files of git that a prune has changed are edits, which are left.
        self.call("repair", self.sidecar, fine=(0, 1) if tool.policy else (0,))
        expect(sorted(files_of(tool.repo)) == before, "a repair brought something back")
        self.update()
        self.call("verify", self.sidecar)
        self.judge("after a prune")


def run(fec, cls, seed, cycles, home):
    rng = random.Random(seed)
    tool = cls(home, rng)
    one = Run(fec, tool)
    tool.make()
    tool.grow(24 << 20)
    if tool.policy:
        tool.call(*tool.backup())
        one.call("protect", "--policy", tool.policy, tool.repo)
    names = list(DAMAGES)
    rng.shuffle(names)
    for cycle in range(cycles):
        tool.grow(1 << 20)
        is_prune = cycle % 4 == 3
        if is_prune:
            one.counts["prunes"] += 1
            tool.call(*tool.backup())
            one.update()
            one.night(tool.prune(), "--prunes")
        else:
            one.night(tool.backup())
        one.call("verify", "--quick", one.sidecar)
        if cycle % 2:
            damages = cycle // 2
            one.damage(names[damages % len(names)], WAYS[damages // len(names) % 3 if damages >= len(names) else damages % 3])
        if cycle % 8 == 5:
            tool.grow(1 << 20)
            one.stand()
    return one.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--dir")
    parser.add_argument("tools", nargs="+", metavar="TOOL", choices=["restic", "rustic", "borg", "git", "annex"])
    args = parser.parse_args()
    fec, bad = os.path.abspath(args.fec), 0
    for name in args.tools:
        cls = {"restic": Restic, "rustic": Rustic, "borg": Borg, "git": Git, "annex": Annex}[name]
        if not shutil.which("git-annex" if name == "annex" else name):
            print("%s is not installed" % name)
            return 2
        home = tempfile.mkdtemp(prefix="repositories-", dir=args.dir)
        try:
            counts = run(fec, cls, args.seed, args.cycles, home)
        except Wrong as wrong:
            bad += 1
            print("%s, seed %d, in %s: %s" % (name, args.seed, home, wrong))
            continue
        subprocess.run(["chmod", "-R", "u+w", home], check=True)
        shutil.rmtree(home)
        print("%s, seed %d: %d nights, %d prunes, %d damages of %.1f to 14 %%, all well" % (name, args.seed, counts["nights"], counts["prunes"], counts["damages"], 100 * counts["least"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
