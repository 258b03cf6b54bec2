"""Containers in streams of Python."""

import io
import threading

import pytest

import fecshards
from fecshards import decode_stream, encode_stream, verify_stream


def pieces(data, size=70_000):
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.fixture
def container(payload):
    out = io.BytesIO()
    root = encode_stream(io.BytesIO(payload), out, k=10, m=4)
    return out.getvalue(), root


def test_from_file_object_to_file_object(fec, tmp_path, payload, container):
    encoded, root = container
    (tmp_path / "x.fec").write_bytes(encoded)
    assert fec("verify", tmp_path / "x.fec", "--root", root.hex())[0] == 0
    for given in [None, root]:
        back = io.BytesIO()
        restored = decode_stream(io.BytesIO(encoded), back, root=given)
        assert restored.is_whole and restored.root == root and back.getvalue() == payload
    report = verify_stream(io.BytesIO(encoded), root=root)
    assert report.is_intact and report.payload_len == len(payload)


def test_iterators_of_bytes(payload, container):
    out = io.BytesIO()
    generator = (piece for piece in [b"", *pieces(payload), bytearray(), b""])
    assert encode_stream(generator, out, k=10, m=4) == container[1]
    assert out.getvalue() == container[0]
    back = io.BytesIO()
    decode_stream(pieces(out.getvalue(), 999), back)
    assert back.getvalue() == payload


def test_raw_files_that_take_less_than_they_are_given(tmp_path, payload, container):
    class Slow(io.RawIOBase):
        def __init__(self):
            self.taken = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.taken += data[:1000]
            return min(len(data), 1000)

    slow = Slow()
    assert encode_stream(io.BytesIO(payload), slow, k=10, m=4) == container[1]
    assert slow.taken == container[0]


def test_a_damaged_stream_is_mended(payload, container):
    encoded, root = bytearray(container[0]), container[1]
    encoded[500_000:600_000] = bytes(100_000)
    del encoded[2_000_000:2_010_000]
    back = io.BytesIO()
    assert decode_stream(io.BytesIO(encoded), back, root=root).mended_sets > 0
    assert back.getvalue() == payload


def test_with_a_root_nothing_else_goes_out(container):
    back = io.BytesIO()
    with pytest.raises(fecshards.WrongRoot):
        decode_stream(io.BytesIO(container[0]), back, root=bytes(32))
    assert back.getvalue() == b""


def test_a_stream_that_is_cut(container):
    with pytest.raises(fecshards.Damaged):
        decode_stream(io.BytesIO(container[0][: len(container[0]) // 2]), io.BytesIO())


def test_what_file_objects_raise_goes_through(payload, container):
    class Broken(Exception):
        pass

    class Source:
        def __init__(self):
            self.left = 3

        def read(self, size):
            self.left -= 1
            if self.left == 0:
                raise Broken("while reading")
            return payload[:size]

    class Sink:
        def write(self, data):
            raise Broken("while writing")

    with pytest.raises(Broken, match="while reading"):
        encode_stream(Source(), io.BytesIO())
    with pytest.raises(Broken, match="while writing"):
        encode_stream(io.BytesIO(payload), Sink())
    with pytest.raises(Broken, match="while writing"):
        decode_stream(io.BytesIO(container[0]), Sink())
    with pytest.raises(Broken, match="while writing"):
        decode_stream(io.BytesIO(container[0]), Sink(), root=container[1])
    with pytest.raises(Broken, match="while reading"):
        decode_stream(Source(), io.BytesIO())


def test_what_is_no_stream_is_a_type_error(payload):
    for source, sink in [(payload, io.BytesIO()), (7, io.BytesIO()), (io.BytesIO(payload), "name"), (io.StringIO("x"), io.BytesIO())]:
        with pytest.raises(TypeError):
            encode_stream(source, sink)


def test_sealed_streams(payload):
    identity, recipient = fecshards.generate_identity("x25519")
    out, back = io.BytesIO(), io.BytesIO()
    encode_stream(io.BytesIO(payload), out, k=4, m=2, recipients=[recipient])
    decode_stream(io.BytesIO(out.getvalue()), back, identities=[identity])
    assert back.getvalue() == payload
    with pytest.raises(fecshards.UsageError):
        decode_stream(io.BytesIO(out.getvalue()), io.BytesIO())


def test_streams_in_several_threads(payload, container):
    results = []

    def work():
        out = io.BytesIO()
        root = encode_stream(pieces(payload), out, k=10, m=4)
        results.append((out.getvalue(), root) == container)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert results == [True] * 4
