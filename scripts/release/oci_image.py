#!/usr/bin/env python3
"""Writes a folder as a container image with one layer, in one tar file.

The file is an OCI image layout, and also has the manifest.json that `docker load` looks for: `podman load` and `docker
load` take it, and `skopeo` as `oci-archive:` and `docker-archive:`. The same folder gives the same bytes: names are
sorted, everything belongs to root, and all times are the one that is given.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import stat
import tarfile

PLATFORMS = {
    "x86_64": {"architecture": "amd64", "os": "linux"},
    "aarch64": {"architecture": "arm64", "os": "linux", "variant": "v8"},
    "armv7": {"architecture": "arm", "os": "linux", "variant": "v7"},
    "riscv64": {"architecture": "riscv64", "os": "linux"},
}


def add(tar, name, data, time):
    """Puts a file into a tar, or a folder if `data` is None."""
    entry = tarfile.TarInfo(name)
    entry.mtime = time
    if data is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    else:
        entry.size, entry.mode = len(data), 0o644
        tar.addfile(entry, io.BytesIO(data))


def layer(root, time):
    """The folder as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = time
            entry.mode = stat.S_IMODE(path.lstat().st_mode)
            if entry.isreg():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    return out.getvalue()


def compressed(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path, help="the folder that becomes the image's root")
    parser.add_argument("output", type=pathlib.Path, help="the tar file")
    parser.add_argument("--machine", choices=PLATFORMS, required=True)
    parser.add_argument("--name", required=True, help="the image's name, as in NAME:TAG")
    parser.add_argument("--tag", required=True)
    parser.add_argument("--entrypoint", required=True, help="the path of the program in the image")
    parser.add_argument("--folder", default="/", help="the folder that it runs in")
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--time", type=int, default=int(os.environ.get("SOURCE_DATE_EPOCH", "0")), help="seconds since 1970")
    args = parser.parse_args()

    created = datetime.datetime.fromtimestamp(args.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = dict(label.split("=", 1) for label in args.label)
    blobs = {}

    def blob(media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def json_bytes(value):
        return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()

    tar = layer(args.root, args.time)
    packed = blob("application/vnd.oci.image.layer.v1.tar+gzip", compressed(tar))
    config = blob("application/vnd.oci.image.config.v1+json", json_bytes({
        **PLATFORMS[args.machine],
        "created": created,
        "config": {"Entrypoint": [args.entrypoint], "WorkingDir": args.folder, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
        "history": [{"created": created, "comment": f"{args.name} {args.tag}"}],
    }))
    manifest = blob("application/vnd.oci.image.manifest.v1+json", json_bytes({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [packed],
        "annotations": labels,
    }))
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{
        **manifest,
        "platform": PLATFORMS[args.machine],
        "annotations": {"org.opencontainers.image.ref.name": args.tag, "io.containerd.image.name": f"{args.name}:{args.tag}"},
    }]}
    # `docker load` reads manifest.json where it does not know layouts.
    def path(descriptor):
        return f"blobs/{descriptor['digest'].replace(':', '/')}"

    docker = [{"Config": path(config), "RepoTags": [f"{args.name}:{args.tag}"], "Layers": [path(packed)]}]

    with tarfile.open(args.output, "w", format=tarfile.PAX_FORMAT) as tar:
        add(tar, "blobs", None, args.time)
        add(tar, "blobs/sha256", None, args.time)
        for name in sorted(blobs):
            add(tar, name, blobs[name], args.time)
        add(tar, "index.json", json_bytes(index), args.time)
        add(tar, "manifest.json", json_bytes(docker), args.time)
        add(tar, "oci-layout", json_bytes({"imageLayoutVersion": "1.0.0"}), args.time)


if __name__ == "__main__":
    main()
