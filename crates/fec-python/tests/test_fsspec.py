"""The file system of fsspec, over the real ones."""

import os
import pickle

import pytest

import fecshards

fsspec = pytest.importorskip("fsspec", reason="there is no fsspec to test the file system with")
FecFileSystem = pytest.importorskip("fecshards.fsspec").FecFileSystem


@pytest.fixture
def container(tmp_path, file):
    return tmp_path / "payload.bin.fec", fecshards.encode_file(file, tmp_path / "payload.bin.fec", k=10, m=4)


@pytest.fixture
def shards(tmp_path, file):
    return tmp_path / "shards", fecshards.encode_file(file, tmp_path / "shards", k=10, m=4, form="shards")


@pytest.fixture
def encoding(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


both = pytest.mark.parametrize("encoding", ["container", "shards"], indirect=True)


@both
def test_a_url_opens_the_payload(encoding, payload):
    path, root = encoding
    for url in f"fec::file://{path}", f"fec://payload.bin::file://{path}", f"fec://payload.bin::{path}":
        with fsspec.open(url, root=root.hex()) as file:
            assert file.size == len(payload) and file.read(10) == payload[:10]
            file.seek(-1000, os.SEEK_END)
            assert file.read() == payload[-1000:]
        with fsspec.open(url, fec={"root": root}) as file:
            assert file.read() == payload
    with pytest.raises(fecshards.WrongRoot), fsspec.open(f"fec::file://{path}", root="11" * 32) as file:
        file.read(1)


@both
def test_the_folder_has_the_payload(encoding, payload):
    path, root = encoding
    fs, within = fsspec.url_to_fs(f"fec::file://{path}", root=root)
    assert type(fs) is FecFileSystem and within == ""
    assert fs.ls("") == [{"name": "payload.bin", "size": len(payload), "type": "file"}]
    assert fs.ls("/", detail=False) == ["payload.bin"] == fs.find("") == fs.glob("*.bin")
    assert fs.ls("payload.bin", detail=False) == ["payload.bin"]
    assert fs.isdir("") and fs.isfile("payload.bin") and fs.info("fec://payload.bin")["size"] == len(payload)
    assert not fs.exists("other") and fs.size("payload.bin") == len(payload)
    for act in fs.ls, fs.info, fs.open, fs.cat_file:
        with pytest.raises(FileNotFoundError):
            act("other")


@both
def test_parts_are_those_of_slices(encoding, payload):
    path, root = encoding
    fs = FecFileSystem(str(path), root=root)
    for start, end in [(None, None), (5, 90_000), (None, 7), (-9, None), (-100, -50), (2_999_999, 5_000_000), (9, 3), (5_000_000, None)]:
        assert fs.cat_file("payload.bin", start, end) == payload[start:end]
    assert fs.cat_ranges(["payload.bin"] * 2, [0, 50], [3, 60]) == [payload[:3], payload[50:60]]
    assert fs.head("", 12) == payload[:12] and fs.tail("", 12) == payload[-12:]


def test_damage_is_mended_or_told(container, shards, payload, damage):
    path, root = container
    damage(path, 1_000_000, bytes(100_000))
    fs = FecFileSystem(path, root=root)
    assert fs.cat_file("") == payload
    folder, root = shards
    for lost in sorted(folder.iterdir())[:4]:
        lost.unlink()
    fs = FecFileSystem(folder, root=root)
    assert fs.cat_file("payload.bin") == payload
    sorted(folder.iterdir())[0].unlink()
    with pytest.raises(fecshards.Damaged):
        fs.cat_file("payload.bin", 0, 100)


def test_parts_of_local_encodings_are_read_alone(container, payload, damage):
    """A part comes although the rest of the payload is gone, and none of it is copied."""
    path, root = container
    damage(path, 200_000, bytes(1_500_000))
    fs = FecFileSystem(path, root=root)
    assert fs.cat_file("", -1000) == payload[-1000:]
    with fs.open("", cache_type="none") as file:
        file.seek(2_900_000)
        assert file.read(100) == payload[2_900_000:2_900_100]
    assert not hasattr(fs, "_temporary")
    with pytest.raises(fecshards.Damaged):
        fs.cat_file("")


@both
def test_another_file_system_below(encoding, payload, memory):
    path, root = encoding
    memory.put(str(path), "/far/payload.bin.fec", recursive=True)
    if path.is_dir():
        memory.rm(memory.ls("/far/payload.bin.fec", detail=False)[:4])
    with fsspec.open("fec::memory://far/payload.bin.fec", root=root) as file:
        assert file.read() == payload
    fs, _ = fsspec.url_to_fs("fec::memory://far/payload.bin.fec", root=root)
    assert fs.ls("", detail=False) == ["payload.bin"] and fs.cat_file("", 70_000, 70_100) == payload[70_000:70_100]
    copies = fs._temporary
    assert os.path.isdir(copies)
    del fs
    assert not os.path.exists(copies)
    with pytest.raises(FileNotFoundError):
        fsspec.open("fec::memory://far/absent.fec", root=root).open()


def test_shards_in_several_places(shards, payload, memory, tmp_path):
    """A list may have what is lost, and what cannot be read."""
    folder, root = shards
    files = sorted(folder.iterdir())
    urls = [*files[:5], tmp_path / "absent", "memory://absent", "memory://also/absent"]
    for number, path in enumerate(files[5:10]):
        memory.put_file(str(path), f"/place{number}/same")
        urls.append(f"memory://place{number}/same")
    assert FecFileSystem(urls, root=root).cat_file("") == payload
    with pytest.raises(fecshards.Damaged):
        FecFileSystem(urls[:-1], root=root).cat_file("")
    with pytest.raises(FileNotFoundError):
        FecFileSystem(["memory://absent", "memory://also/absent"]).ls("")


def test_sealed_payloads(tmp_path, file, payload):
    identity, recipient = fecshards.generate_identity("x25519")
    root = fecshards.encode_file(file, tmp_path / "sealed", k=3, m=2, recipients=[recipient])
    with fsspec.open(f"fec::file://{tmp_path}/sealed", root=root, identities=[identity]) as opened:
        assert opened.size == len(payload) and opened.read() == payload
    assert fecshards.payload_len(tmp_path / "sealed", root=root, identities=[identity]) == len(payload)
    with pytest.raises(fecshards.UsageError):
        FecFileSystem(tmp_path / "sealed", root=root).ls("")


def test_text_and_pickles(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n" * 5000)
    root = fecshards.encode_file(tmp_path / "t.csv", tmp_path / "t.csv.fec", k=3, m=2).hex()
    opened = fsspec.open(f"fec::file://{tmp_path}/t.csv.fec", "rt", root=root)
    for either in opened, pickle.loads(pickle.dumps(opened)):
        with either as lines:
            assert sum(1 for line in lines if line == "1,2\n") == 5000


def test_empty_payloads(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    fecshards.encode_file(tmp_path / "empty", tmp_path / "empty.fec", k=3, m=2)
    fs = FecFileSystem(tmp_path / "empty.fec")
    assert fs.size("empty") == 0 and fs.cat_file("") == b"" and fs.open("").read() == b""


def test_wrong_use(container, tmp_path):
    path, root = container
    with pytest.raises(ValueError, match="container or shard files"):
        FecFileSystem()
    fs = FecFileSystem(path, root=root)
    with pytest.raises(NotImplementedError):
        fs.open("payload.bin", "wb")
    with pytest.raises(FileNotFoundError):
        FecFileSystem(tmp_path / "absent").ls("")
    with pytest.raises(fecshards.UsageError, match="32 bytes, or 64"):
        FecFileSystem(path, root="short").ls("")


def test_a_container_that_was_cut_has_no_length(tmp_path):
    """Reading on would end too early without a word. The length of a stream stands behind its first group."""
    path = tmp_path / "x.fec"
    with open(path, "wb") as sink:
        fecshards.encode_stream((bytes(1 << 20) for _ in range(40)), sink, k=1, m=1)
    assert fecshards.payload_len(path) == 40 << 20
    os.truncate(path, path.stat().st_size // 2)
    assert fecshards.payload_len(path) is None
    with pytest.raises(fecshards.Damaged, match="was cut"):
        FecFileSystem(path).open("")
