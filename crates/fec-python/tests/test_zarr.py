"""The codec of zarr, in arrays of the real zarr."""

import json

import pytest

import fecshards

zarr = pytest.importorskip("zarr", minversion="3", reason="there is no zarr 3 to test the codec with")
numpy = pytest.importorskip("numpy", reason="there is no numpy to test the codec with")
FecCodec = pytest.importorskip("fecshards.zarr").FecCodec


@pytest.fixture
def values():
    return numpy.random.default_rng(1).integers(0, 1 << 16, (400, 300), dtype="uint16")


@pytest.fixture
def stored(tmp_path, values):
    """An array of 4 x 3 chunks, and the files of these."""
    at = tmp_path / "x.zarr"
    codec = FecCodec(k=10, m=4)
    array = zarr.create_array(at, shape=values.shape, chunks=(100, 100), dtype=values.dtype, compressors=[codec])
    array[:] = values
    chunks = sorted(path for path in (at / "c").rglob("*") if path.is_file())
    assert len(chunks) == 12
    return at, chunks


def overwrite(path, start, end, value=0x5A):
    data = bytearray(path.read_bytes())
    data[start:end] = bytes([value]) * (min(end, len(data)) - start)
    path.write_bytes(data)


def test_each_chunk_is_a_container(stored, values):
    at, chunks = stored
    for path in chunks:
        report = fecshards.verify_file(path)
        assert report.is_intact and (report.k, report.m, report.payload_len) == (10, 4, 20_000)
    assert (zarr.open_array(at, mode="r")[:] == values).all()


def test_rot_in_every_chunk_is_mended(stored, values):
    at, chunks = stored
    for nth, path in enumerate(chunks):
        size = path.stat().st_size
        # The beginning, the end and what lies between: two of fourteen shards' worth.
        at_byte = (size - size // 7) * nth // (len(chunks) - 1)
        overwrite(path, at_byte, at_byte + size // 7)
    before = [path.read_bytes() for path in chunks]
    assert not any(fecshards.verify_file(path).is_intact for path in chunks)
    assert (zarr.open_array(at, mode="r")[:] == values).all()
    assert [path.read_bytes() for path in chunks] == before
    # The chunk itself becomes what it was by repair.
    fecshards.repair_file(chunks[0])
    assert fecshards.verify_file(chunks[0]).is_intact


def test_a_chunk_that_was_cut_is_mended(stored, values):
    at, chunks = stored
    for path in chunks:
        path.write_bytes(path.read_bytes()[: -path.stat().st_size // 5])
    assert (zarr.open_array(at, mode="r")[:] == values).all()


def test_too_much_damage_is_told(stored, values):
    at, chunks = stored
    overwrite(chunks[0], 0, chunks[0].stat().st_size // 2)
    array = zarr.open_array(at, mode="r")
    with pytest.raises(fecshards.Damaged, match="cannot be restored|no intact shard"):
        array[:100, :100]
    # The others are read as before.
    assert (array[100:] == values[100:]).all()
    chunks[0].write_bytes(b"no container")
    with pytest.raises(fecshards.Damaged, match="no intact shard"):
        array[0, 0]


def test_the_metadata_name_the_codec(stored, values):
    at, _ = stored
    codecs = json.loads((at / "zarr.json").read_text())["codecs"]
    assert codecs[-1] == {"name": "fecshards", "configuration": {"k": 10, "m": 4, "hash": "blake3"}}
    (codec,) = zarr.open_array(at, mode="r").compressors
    assert codec == FecCodec(k=10, m=4) and codec != FecCodec(k=10, m=5)
    assert FecCodec.from_dict(FecCodec(k=3, m=2, hash="sha256").to_dict()) == FecCodec(k=3, m=2, hash="sha256")
    assert FecCodec.from_dict({"name": "fecshards"}) == FecCodec()


def test_zarr_finds_it_by_its_name(tmp_path, values):
    """By the entry point: nothing of this file registers it."""
    named = {"name": "fecshards", "configuration": {"k": 4, "m": 2}}
    array = zarr.create_array(tmp_path / "y", shape=values.shape, chunks=(200, 300), dtype=values.dtype, compressors=[named])
    array[:] = values
    assert type(array.compressors[0]) is FecCodec and (array[:] == values).all()


def test_behind_a_compressor(tmp_path):
    zeros = numpy.zeros((1000, 1000), dtype="float64")
    array = zarr.create_array(
        tmp_path / "z", shape=zeros.shape, chunks=zeros.shape, dtype=zeros.dtype, config={"write_empty_chunks": True},
        compressors=[zarr.codecs.GzipCodec(), FecCodec()],
    )
    array[:] = zeros
    (chunk,) = (path for path in (tmp_path / "z/c").rglob("*") if path.is_file())
    assert chunk.stat().st_size < 50_000
    overwrite(chunk, 3_000, 5_000)
    assert (zarr.open_array(tmp_path / "z", mode="r")[:] == zeros).all()


def test_inside_of_shards_of_zarr(tmp_path, values):
    """Inner chunks and the index are containers; one rots after the other, and parts are still read alone."""
    codec = FecCodec(k=4, m=4)
    index = [zarr.codecs.BytesCodec(), codec]
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=(50, 50), codecs=[zarr.codecs.BytesCodec(), codec], index_codecs=index
    )
    store = tmp_path / "s"
    array = zarr.create_array(
        store, shape=values.shape, chunks=(200, 300), dtype=values.dtype, serializer=sharding, compressors=None, filters=None
    )
    array[:] = values
    files = [path for path in (store / "c").rglob("*") if path.is_file()]
    assert len(files) == 2
    chunk, index_len = codec.compute_encoded_size(5_000, None), codec.compute_encoded_size(16 * 24, None)
    for path in files:
        assert path.stat().st_size == 24 * chunk + index_len
        for start in [nth * chunk + chunk // 3 for nth in range(24)] + [24 * chunk + index_len // 3]:
            overwrite(path, start, start + 100)
    read = zarr.open_array(store, mode="r")
    assert (read[:] == values).all() and (read[60:70, 120:130] == values[60:70, 120:130]).all()


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
def test_around_shards_of_zarr(tmp_path, values):
    """Behind the sharding codec a whole shard is one container."""
    sharding = zarr.codecs.ShardingCodec(chunk_shape=(50, 50))
    array = zarr.create_array(
        tmp_path / "a", shape=values.shape, chunks=(200, 300), dtype=values.dtype, serializer=sharding, filters=None,
        compressors=[FecCodec(k=10, m=4)],
    )
    array[:] = values
    files = [path for path in (tmp_path / "a/c").rglob("*") if path.is_file()]
    for path in files:
        overwrite(path, path.stat().st_size // 2, path.stat().st_size // 2 + 3_000)
    assert len(files) == 2 and (zarr.open_array(tmp_path / "a", mode="r")[:] == values).all()


@pytest.mark.parametrize("length", [0, 1, 5_000, 100_000])
def test_lengths_do_not_depend_on_the_bytes(length):
    codec = FecCodec(k=10, m=4)
    data = numpy.random.default_rng(2).bytes(length)
    assert len(codec._encode(data)) == codec.compute_encoded_size(length, None)


def test_wrong_configurations():
    for wrong in [{"k": 0}, {"m": 0}, {"k": 1 << 20}, {"hash": "md5"}]:
        with pytest.raises(ValueError):
            FecCodec(**wrong)
    for wrong in [{"k": 2.5}, {"m": True}, {"k": "10"}]:
        with pytest.raises(TypeError):
            FecCodec(**wrong)
    with pytest.raises(ValueError, match="not shards"):
        FecCodec.from_dict({"name": "fecshards", "configuration": {"shards": 3}})
    with pytest.raises(ValueError, match="gzip"):
        FecCodec.from_dict({"name": "gzip", "configuration": {}})
