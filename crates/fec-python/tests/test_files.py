"""Shard files and containers on paths, held against the command."""

import os
import signal

import pytest

import fecshards
from fecshards import decode_file, encode_file, payload_len, read_range, repair_file, verify_file


@pytest.mark.parametrize("form", ["container", "shards"])
def test_the_command_reads_what_is_written_here(fec, tmp_path, file, payload, form):
    output = tmp_path / form
    root = encode_file(file, output, k=10, m=4, form=form)
    assert isinstance(root, bytes) and len(root) == 32
    assert fec("verify", output, "--root", root.hex())[0] == 0
    assert fec("decode", output, "-o", tmp_path / "back", "--root", root.hex())[0] == 0
    assert (tmp_path / "back").read_bytes() == payload


@pytest.mark.parametrize("hash", ["blake3", "sha256"])
@pytest.mark.parametrize("form", ["container", "shards"])
def test_what_the_command_writes_is_read_here(fec, tmp_path, file, payload, form, hash):
    output = tmp_path / "encoded"
    code, root = fec("encode", file, "-k", 10, "-m", 4, "--hash", hash, "-o", f"{output}/" if form == "shards" else output)
    assert code == 0
    # The same bytes have the same root, whoever encodes them.
    assert encode_file(file, tmp_path / "own", k=10, m=4, form=form, hash=hash).hex() == root
    report = verify_file(output, root=root)
    assert report.is_intact and report.is_restorable and report.form == form and (report.k, report.m) == (10, 4)
    assert report.root.hex() == root and report.payload_len == len(payload) and report.may_still_lose == 4
    restored = decode_file(output, tmp_path / "back", root=root)
    assert restored.is_whole and restored.root.hex() == root and restored.payload_len == len(payload)
    assert (tmp_path / "back").read_bytes() == payload


def test_a_container_mends_itself(tmp_path, file, payload, damage):
    output = tmp_path / "x.fec"
    root = encode_file(file, output, k=10, m=4)
    damage(output, 1_000_000, bytes(100_000))
    report = verify_file(output, root=root)
    assert not report.is_intact and report.is_restorable and report.may_still_lose < 4
    assert any(shard.state != "intact" for shard in report.shards)
    assert decode_file(output, tmp_path / "back", root=root).mended_sets > 0
    assert (tmp_path / "back").read_bytes() == payload


def test_lost_shards_are_named_and_made_anew(fec, tmp_path, file, payload, damage):
    folder = tmp_path / "shards"
    root = encode_file(file, folder, k=10, m=4, form="shards")
    files = sorted(folder.iterdir())
    before = {path: path.read_bytes() for path in files}
    for path in files[:3]:
        path.unlink()
    damage(files[7], 50_000)
    report = verify_file(folder, root=root)
    assert [shard.state for shard in report.shards] == ["missing"] * 3 + ["intact"] * 4 + ["damaged"] + ["intact"] * 6
    assert str(files[7]) in report.shards[7].files[0] and report.shards[7].damage
    assert fec("verify", folder, "--root", root.hex())[0] == 1
    # Some of the shard files are enough, wherever they are.
    decode_file(files[3:], tmp_path / "back", root=root.hex())
    assert (tmp_path / "back").read_bytes() == payload
    assert repair_file(folder, root=root, dry_run=True).written is False
    repaired = repair_file(folder, root=root)
    assert repaired.written and sorted(repaired.files) == files[:3] + [files[7]] and repaired.root == root
    assert {path: path.read_bytes() for path in sorted(folder.iterdir())} == before


def test_what_is_made_anew_is_no_more_readable(tmp_path, file):
    folder, container = tmp_path / "shards", tmp_path / "container"
    encode_file(file, folder, k=10, m=4, form="shards")
    encode_file(file, container, k=10, m=4, form="container")
    sorted(folder.iterdir())[0].unlink()
    container.write_bytes(container.read_bytes()[:-1])
    for path in [*folder.iterdir(), container]:
        path.chmod(0o600)
    for source, output in (folder, tmp_path / "new"), (container, tmp_path / "whole"):
        made = repair_file(source, output=output).files
        assert [path.stat().st_mode & 0o777 for path in made] == [0o600]


def test_what_is_lost_is_told_and_nothing_is_written(tmp_path, file, payload):
    folder = tmp_path / "shards"
    root = encode_file(file, folder, k=10, m=4, form="shards")
    for path in sorted(folder.iterdir())[:5]:
        path.unlink()
    assert verify_file(folder, root=root).is_restorable is False
    with pytest.raises(fecshards.Damaged) as raised:
        decode_file(folder, tmp_path / "back", root=root)
    assert raised.value.exit_code == 3 and raised.value.restored.lost and not raised.value.restored.is_whole
    assert not (tmp_path / "back").exists()
    restored = decode_file(folder, tmp_path / "back", root=root, partial=True)
    assert not restored.is_whole
    back = (tmp_path / "back").read_bytes()
    assert len(back) == len(payload)
    kept = bytearray(payload)
    for start, end in restored.lost:
        kept[start:end] = bytes(end - start)
    assert back == kept


@pytest.mark.parametrize("form", ["container", "shards"])
def test_ranges(fec, tmp_path, file, payload, damage, form):
    output, size = tmp_path / form, len(payload)
    root = encode_file(file, output, k=10, m=4, form=form)
    assert payload_len(output, root=root) == payload_len(output) == size
    for start, end in [(0, 1), (0, size), (size - 1, size), (size, size), (1000, 90_000), (5, 5)]:
        assert read_range(output, start, end, root=root) == payload[start:end]
    assert read_range(output, size - 7) == payload[-7:]
    for start, end in [(0, size + 1), (size + 1, None), (9, 8)]:
        with pytest.raises(fecshards.UsageError):
            read_range(output, start, end)
    with pytest.raises(fecshards.WrongRoot):
        read_range(output, 0, 1, root="11" * 32)
    with pytest.raises((OverflowError, TypeError)):
        read_range(output, -1, 5)
    if form == "shards":
        # Any ten of the files restore what the others had; nine do not.
        files = sorted(output.iterdir())
        assert read_range(files[4:], 100, 200_000, root=root) == payload[100:200_000]
        with pytest.raises(fecshards.Damaged):
            read_range(files[5:], 100, 200_000, root=root)
    else:
        damage(output, 500_000, bytes(200_000))
        assert read_range(output, 0, size, root=root) == payload


def test_ranges_of_sealed_payloads(tmp_path, file, payload):
    identity, recipient = fecshards.generate_identity("x25519")
    root = encode_file(file, tmp_path / "sealed", k=3, m=2, recipients=[recipient])
    assert read_range(tmp_path / "sealed", 70_000, 140_000, root=root, identities=[identity]) == payload[70_000:140_000]
    with pytest.raises(fecshards.UsageError):
        read_range(tmp_path / "sealed", 0, 1, root=root)


def test_another_root_is_found_out(tmp_path, file):
    output = tmp_path / "x.fec"
    encode_file(file, output, k=4, m=2)
    for act in [lambda: decode_file(output, tmp_path / "back", root="11" * 32), lambda: verify_file(output, root=bytes(32))]:
        with pytest.raises(fecshards.WrongRoot) as raised:
            act()
        assert raised.value.exit_code == 5
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("root", [b"short", "11", "g" * 64, "11" * 33, "é" * 32])
def test_what_is_no_root_is_wrong_use(tmp_path, file, root):
    with pytest.raises(fecshards.UsageError, match="32 bytes, or 64"):
        verify_file(file, root=root)


def test_what_the_system_reports_is_an_oserror(tmp_path, file):
    with pytest.raises(FileNotFoundError) as raised:
        encode_file(tmp_path / "absent", tmp_path / "x.fec")
    assert raised.value.filename == str(tmp_path / "absent") and raised.value.errno == 2
    with pytest.raises(FileNotFoundError):
        decode_file(tmp_path / "absent", tmp_path / "back")
    with pytest.raises(OSError):
        encode_file(file, tmp_path / "no" / "folder" / "x.fec")


def test_limits_are_refusals(tmp_path, file):
    with pytest.raises(fecshards.Refused) as raised:
        encode_file(file, tmp_path / "x.fec", k=4, m=2, set_size=1 << 40)
    assert raised.value.exit_code == 6


def test_wrong_use(tmp_path, file):
    output = tmp_path / "x.fec"
    encode_file(file, output)
    wrong = [
        lambda: encode_file(file, output),
        lambda: encode_file(tmp_path, tmp_path / "y.fec"),
        lambda: encode_file(file, tmp_path / "y.fec", k=0),
        lambda: encode_file(file, tmp_path / "y.fec", form="zip"),
        lambda: encode_file(file, tmp_path / "y.fec", hash="md5"),
        lambda: encode_file(file, tmp_path / "y.fec", threads=0),
        lambda: encode_file(file, tmp_path / "y.fec", recipients=["age1nobody"]),
        lambda: decode_file(output, file),
        # The output would take the place of the input.
        lambda: encode_file(file, file, overwrite=True),
        lambda: decode_file(output, output, overwrite=True),
        # The file claims to be empty, but is not.
        lambda: encode_file("/proc/self/status", tmp_path / "y.fec"),
        lambda: encode_file("/dev/zero", tmp_path / "y.fec"),
    ]
    for act in wrong:
        with pytest.raises(fecshards.UsageError) as raised:
            act()
        assert isinstance(raised.value, (fecshards.FecError, ValueError)) and raised.value.exit_code == 2
    assert not (tmp_path / "y.fec").exists() and verify_file(output).is_intact
    encode_file(file, output, k=2, m=1, overwrite=True)
    assert verify_file(output).k == 2


def test_what_is_no_encoding(tmp_path, file):
    with pytest.raises(fecshards.Damaged, match="no intact shard or record"):
        verify_file(file)


def test_deep_verification(tmp_path, file):
    output = tmp_path / "x.fec"
    encode_file(file, output, k=4, m=2)
    assert verify_file(output).is_proved is None
    assert verify_file(output, deep=True).is_proved is True


def test_reports_show_themselves(tmp_path, file):
    output = tmp_path / "x.fec"
    encode_file(file, output, k=4, m=2)
    report = verify_file(output)
    assert repr(report) == "Report(form=\"container\", k=4, m=2, is_intact=True, is_restorable=True)"
    assert repr(report.shards[0]) == "Shard(index=0, state=\"intact\")"
    with pytest.raises(AttributeError):
        report.k = 5


@pytest.mark.parametrize("kind", ["hybrid", "x25519"])
def test_sealed_payloads(fec, tmp_path, file, payload, kind):
    identity, recipient = fecshards.generate_identity(kind)
    output = tmp_path / "x.fec"
    root = encode_file(file, output, k=4, m=2, recipients=[recipient])
    assert payload[:1000] not in output.read_bytes()
    assert verify_file(output, root=root).is_sealed
    with pytest.raises(fecshards.UsageError):
        decode_file(output, tmp_path / "back", root=root)
    other, _ = fecshards.generate_identity(kind)
    with pytest.raises(fecshards.WrongRoot):
        decode_file(output, tmp_path / "back", root=root, identities=[other])
    assert not (tmp_path / "back").exists()
    restored = decode_file(output, tmp_path / "back", root=root, identities=[other, identity])
    assert restored.is_sealed and restored.payload_len == len(payload)
    assert (tmp_path / "back").read_bytes() == payload
    (tmp_path / "key").write_text(identity + "\n")
    assert fec("decode", output, "-i", tmp_path / "key", "-o", tmp_path / "other", "--root", root.hex())[0] == 0
    assert (tmp_path / "other").read_bytes() == payload


def test_a_passphrase(tmp_path, file, payload):
    output = tmp_path / "shards"
    encode_file(file, output, k=4, m=2, form="shards", passphrase="correct horse")
    decode_file(output, tmp_path / "back", passphrase="correct horse")
    assert (tmp_path / "back").read_bytes() == payload
    with pytest.raises(fecshards.WrongRoot):
        decode_file(output, tmp_path / "other", passphrase="battery staple")


class Alarm(Exception):
    pass


@pytest.mark.parametrize("what", ["encode_file", "encode_stream", "verify_file", "decode_file", "repair_file"])
def test_what_a_signal_raises_ends_the_work(tmp_path, what):
    """As Ctrl-C does. The zeros would take longer than the signal."""
    big, code = tmp_path / "big", {"k": 10, "m": 1, "threads": 1}
    with open(big, "wb") as zeros:
        zeros.truncate(1 << 30 if what.startswith("encode") else 300_000_000)
    if not what.startswith("encode"):
        encode_file(big, tmp_path / "one", **code)
    before = sorted(os.listdir(tmp_path))

    def ring(*_):
        raise Alarm

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(Alarm):
            if what == "encode_file":
                encode_file(big, tmp_path / "out", **code)
            elif what == "encode_stream":
                with open(big, "rb") as source, open(os.devnull, "wb") as sink:
                    fecshards.encode_stream(source, sink, **code)
            elif what == "verify_file":
                verify_file(tmp_path / "one", deep=True, threads=1)
            elif what == "decode_file":
                decode_file(tmp_path / "one", tmp_path / "out", threads=1)
            else:
                repair_file(tmp_path / "one", output=tmp_path / "out", threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert sorted(os.listdir(tmp_path)) == before
