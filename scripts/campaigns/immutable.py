#!/usr/bin/env python3
"""Tries the policies of docs/guide/immutable.md against a server of S3 with versions, Object Lock and policies.

    immutable.py --fec PATH [--tools DIR] [--install]

Three buckets are three places. The keys of the page work on them: each does what the page says that it can do, and is
refused the rest. A thief with the key of the writer, and one with that of the mender, do their worst, and nothing is
lost. The server is versitygw, as scripts/campaigns/store_servers.py finds or installs it. Exit codes: 0 all is as the
page says, 1 something is not, 2 the server is not here.
"""
import argparse
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from store_servers import KEY, REGION, SECRET, CannotRun, ask, default_tools, die_with_parent, free_port, program, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUCKETS = ("backup-1", "backup-2", "backup-3")
LOCK = ('<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>'
        '<Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>')


def policies():
    """The statements of the page, by the key that gets them."""
    text = (ROOT / "docs/guide/immutable.md").read_text(encoding="utf-8")
    blocks = [[json.loads(line) for line in block.splitlines()] for block in re.findall(r"```json\n(.*?)\n```", text, re.S)]
    writer, reader, mender = blocks
    return {"writer": writer, "reader": reader, "auditor": reader, "mender": mender}


class Field:
    def __init__(self, fec, tools, install, scratch):
        self.fec, self.scratch = fec, pathlib.Path(scratch)
        self.host = f"127.0.0.1:{free_port()}"
        for name in ("data", "versions", "iam", "home"):
            (self.scratch / name).mkdir()
        gateway = program("versitygw", tools, install)
        command = [gateway, "--access", KEY, "--secret", SECRET, "--region", REGION, "--port", self.host, "--quiet",
                   "--iam-dir", self.scratch / "iam", "posix", "--versioning-dir", self.scratch / "versions", self.scratch / "data"]
        self.log = open(self.scratch / "log", "w+b")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
                                        preexec_fn=die_with_parent)
        self.wait()
        statements = []
        for name, rows in policies().items():
            run(gateway, "admin", "--access", KEY, "--secret", SECRET, "--region", REGION, "--endpoint-url", "http://" + self.host,
                "create-user", "--access", name, "--secret", name + "-secret", "--role", "user")
            statements += [dict(row, Principal={"AWS": [name]}) for row in rows]
        for bucket in BUCKETS:
            self.must(200, "PUT", f"/{bucket}", headers={"x-amz-bucket-object-lock-enabled": "true"})
            self.must(200, "PUT", f"/{bucket}", [("object-lock", "")], LOCK.encode())
            own = json.loads(json.dumps(statements).replace(":::backup-1", ":::" + bucket))
            self.must((200, 204), "PUT", f"/{bucket}", [("policy", "")], json.dumps({"Version": "2012-10-17", "Statement": own}).encode())

    def wait(self):
        for _ in range(300):
            if self.process.poll() is not None:
                raise CannotRun("versitygw does not start: " + (self.scratch / "log").read_text(errors="replace")[-500:])
            try:
                ask(self.host, "GET", "/", timeout=1)
                return
            except OSError:
                time.sleep(0.05)
        raise CannotRun("versitygw does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def must(self, wanted, method, path, query=(), body=b"", headers=()):
        """A request by the owner of the buckets."""
        headers = dict(headers)
        if body:
            headers["Content-MD5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        status, told, answer = ask(self.host, method, path, query, body, headers)
        if status not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            raise CannotRun(f"{method} {path} {query}: {status} {answer[:300]}")
        return told, answer

    def run(self, key, code, *words, says=""):
        """Runs fec with a key, in the home folder, and holds it to an exit code."""
        secret = {"owner": (KEY, SECRET)}.get(key, (key, key + "-secret"))
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        env = dict(kept, AWS_ACCESS_KEY_ID=secret[0], AWS_SECRET_ACCESS_KEY=secret[1], NO_PROXY="127.0.0.1")
        done = subprocess.run([self.fec, *words, "--retries", "1"], cwd=self.scratch / "home", env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        told = "%s: fec %s: exit code %d\n%s" % (key, " ".join(words), done.returncode, done.stdout)
        if done.returncode not in (code if isinstance(code, tuple) else (code,)) or says not in done.stdout:
            raise AssertionError(f"wanted {code} {says!r}\n{told}")
        return done.stdout

    def places(self, option):
        return [word for bucket in BUCKETS for word in (option, f"s3://{bucket}/x,endpoint=http://{self.host},region={REGION}")]

    def objects(self, bucket):
        """The shard files of a bucket, as the server keeps them."""
        return sorted(path for path in (self.scratch / "data" / bucket / "x").rglob("*.shard") if path.is_file())


def keys_do_what_the_page_says(field):
    home = field.scratch / "home"
    (home / "backup").write_bytes(os.urandom(3 << 20))
    to, of = field.places("--to"), ["--root", "@backup.root", *field.places("--from")]
    encode = ["encode", "backup", "-k", "4", "-m", "4", *to, "--root-file"]
    field.run("nobody", 4, *encode, "never")
    field.run("reader", 4, *encode, "never", says="not allowed")
    assert not (home / "never").exists()
    field.run("writer", 0, *encode, "backup.root")
    field.run("writer", 0, *encode, "backup.root", says="11 were there already")
    for key in ("reader", "auditor", "writer"):
        field.run(key, 0, "verify", *of, "--audit", says="99 %: no place has lost more")
        field.run(key, 0, "decode", *of, "-o", "back", "-f")
        assert (home / "back").read_bytes() == (home / "backup").read_bytes()
        field.run(key, 0, "list", *field.places("--from"))
    field.run("nobody", 4, "decode", *of, "-o", "none")
    # Objects that may not be removed stay, and that is told.
    for key in ("reader", "writer"):
        field.run(key, 1, "forget", *of, "--yes", says="not allowed")
    field.run("auditor", 0, "verify", *of, "--deep")
    return of


def damage_is_mended(field, of):
    rotten = field.objects("backup-2")[0]
    whole = rotten.read_bytes()
    rotten.write_bytes(whole[:5000] + bytes(9) + whole[5009:])
    # The rotten bytes are not in the server's version of the object, but under its name.
    field.run("auditor", 1, "verify", *of, "--deep", says="1 object damaged")
    field.run("reader", 1, "repair", *of, "--deep", "--now", says="1 object could not be sent")
    # It may not remove what is damaged, and says so.
    field.run("writer", 1, "repair", *of, "--deep", "--now", says="1 shard made anew")
    field.run("mender", 0, "repair", *of, "--deep", "--now")
    field.run("auditor", 0, "verify", *of, "--deep")


def marks_of(field, bucket):
    """The marks of deletes in a bucket, as keys and versions, and a version of an object."""
    _, listed = field.must(200, "GET", f"/{bucket}", [("versions", "")])

    def of(row):
        return tuple(re.search(rb"<%s>(.*?)</%s>" % (name, name), row).group(1).decode() for name in (b"Key", b"VersionId"))
    marks, versions = (re.findall(rb"<%s>.*?</%s>" % (name, name), listed, re.S) for name in (b"DeleteMarker", b"Version"))
    return {of(mark) for mark in marks}, of(versions[0])


def thieves_destroy_nothing(field, of):
    home = field.scratch / "home"
    whole = {(bucket, path.name): path.read_bytes() for bucket in BUCKETS for path in field.objects(bucket)}
    # With the key of the mender: all that it can be told to remove.
    before = {bucket: marks_of(field, bucket)[0] for bucket in BUCKETS}
    field.run("mender", 1, "forget", *of, "--yes", says="older versions")
    field.run("auditor", 3, "verify", *of)
    for bucket in BUCKETS:
        marks, version = marks_of(field, bucket)
        assert marks - before[bucket], "no marks"
        for key, mark in marks - before[bucket]:
            field.must(204, "DELETE", f"/{bucket}/{key}", [("versionId", mark)])
        # The lock holds the versions themselves, also against their owner.
        status, _, _ = ask(field.host, "DELETE", f"/{bucket}/{version[0]}", [("versionId", version[1])])
        assert status in (400, 403), f"the lock lets a version go: {status}"
    field.run("auditor", 0, "verify", *of, "--deep")
    field.run("reader", 0, "decode", *of, "-o", "back", "-f")
    assert (home / "back").read_bytes() == (home / "backup").read_bytes()
    assert whole == {(bucket, path.name): path.read_bytes() for bucket in BUCKETS for path in field.objects(bucket)}
    # With the key of the writer: other bytes over all objects of one place, as newer versions.
    for path in field.objects("backup-3"):
        key = path.relative_to(field.scratch / "data").as_posix()
        field.must(200, "PUT", f"/{key}", body=os.urandom(1000))
    field.run("auditor", 1, "verify", *of)
    field.run("reader", 0, "decode", *of, "-o", "back", "-f")
    assert (home / "back").read_bytes() == (home / "backup").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--tools", default=default_tools(), type=pathlib.Path)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="fec-immutable-") as scratch:
            field = Field(os.path.realpath(options.fec), options.tools.absolute(), options.install, scratch)
            try:
                of = keys_do_what_the_page_says(field)
                damage_is_mended(field, of)
                thieves_destroy_nothing(field, of)
            finally:
                field.stop()
    except CannotRun as error:
        print(f"immutable: {error}", file=sys.stderr)
        return 2
    except AssertionError as error:
        print(f"immutable: {error}", file=sys.stderr)
        return 1
    print("four keys, a lock and two thieves: all is as the page says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
