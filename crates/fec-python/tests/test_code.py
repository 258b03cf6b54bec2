"""Shards alone."""

import array
import itertools
import mmap
import random
import threading
import time

import pytest

import fecshards
from fecshards import Code


@pytest.mark.parametrize("length", [0, 1, 2, 63, 64, 65, 640, 1000, 99_999])
def test_any_k_shards_restore_the_data(length):
    data = random.Random(length).randbytes(length)
    code = Code(3, 2)
    shards = code.encode(data)
    assert len(shards) == code.n == 5
    assert {len(shard) for shard in shards} == {code.shard_len(length)}
    assert b"".join(shards[:3])[:length] == data
    for chosen in itertools.combinations(range(5), 3):
        assert code.decode({index: shards[index] for index in chosen}, length) == data


@pytest.mark.parametrize("k, m", [(1, 0), (1, 1), (2, 254), (128, 128), (255, 1), (10, 4)])
def test_codes_of_every_shape(k, m):
    data = random.Random(k).randbytes(100_003)
    code = Code(k, m)
    shards = code.encode(data)
    chosen = random.Random(m).sample(range(k + m), k)
    assert code.decode({index: shards[index] for index in chosen}, len(data)) == data
    assert code.rebuild({index: shards[index] for index in chosen}, range(k + m)) == shards
    assert code.recovery(shards[:k]) == shards[k:]


def test_the_recovery_shards_are_those_of_the_field():
    # With one original every shard is a copy of it: the polynomial is constant.
    assert Code(1, 3).encode(b"constant") == [b"constant"] * 4
    # With k = 2 and m = 1 shard 2 is the line through the originals at 2: 3·a + 2·b in GF(2^8) modulo
    # x^8+x^4+x^3+x^2+1.
    assert Code(2, 1).recovery([b"\x01", b"\x00"]) == [b"\x03"]
    assert Code(2, 1).recovery([b"\x00", b"\x01"]) == [b"\x02"]
    assert Code(2, 1).recovery([b"\x00", b"\x80"]) == [b"\x1d"]


def test_everything_with_a_buffer_is_data():
    data = bytes(range(256)) * 16
    code = Code(4, 2)
    expected = code.encode(data)
    mapped = mmap.mmap(-1, len(data))
    mapped[:] = data
    for other in [bytearray(data), memoryview(data), array.array("I", data), mapped, memoryview(data + data)[: len(data)]]:
        assert code.encode(other) == expected
    every_other = memoryview(bytes(itertools.chain.from_iterable(zip(data, data))))[::2]
    assert code.encode(every_other) == expected
    assert code.decode({5: memoryview(expected[5]), 1: bytearray(expected[1]), 2: expected[2], 4: expected[4]}) == data


def test_threads_change_nothing():
    data = random.Random(7).randbytes(1_000_003)
    assert Code(10, 4, threads=3).encode(data) == Code(10, 4).encode(data)


@pytest.mark.parametrize("k, m", [(0, 1), (200, 57), (257, 0)])
def test_what_is_no_code_is_refused(k, m):
    with pytest.raises(fecshards.UsageError):
        Code(k, m)


def test_too_few_shards_are_damage():
    code = Code(3, 2)
    shards = code.encode(b"some data")
    with pytest.raises(fecshards.Damaged, match="2 shards are here, and 3 are needed") as raised:
        code.decode({0: shards[0], 4: shards[4]}, 9)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    "shards, length",
    [
        ({0: b"aa", 1: b"b", 2: b"cc"}, 3),
        ({0: b"aa", 1: b"bb", 5: b"cc"}, 3),
        ({0: b"", 1: b"", 2: b""}, 0),
        ({0: b"aa", 1: b"bb", 2: b"cc"}, 7),
    ],
)
def test_shards_that_do_not_fit_are_wrong_use(shards, length):
    with pytest.raises(fecshards.UsageError):
        Code(3, 2).decode(shards, length)


def test_other_objects_are_type_errors():
    for wrong in ["text", 7, None, [1, 2]]:
        with pytest.raises(TypeError):
            Code(2, 1).encode(wrong)
    with pytest.raises(TypeError):
        Code(2, 1).decode([b"a", b"b"])
    with pytest.raises(ValueError):
        Code(2, 1).recovery([b"a"])


def test_numbers_of_shards_are_whole_and_not_negative():
    with pytest.raises(TypeError):
        Code()
    for k, m in [(-1, -1), (-1, 1), (1, -1)]:
        with pytest.raises(OverflowError):
            Code(k, m)
    with pytest.raises(OverflowError):
        Code(2, 1).decode({-1: b"a", 0: b"b"})
    with pytest.raises(TypeError):
        Code(2, 1).decode({"c": b"a", "d": b"b"})


def test_other_threads_run_while_a_call_works():
    # A thread can count while another codes only if the call releases the GIL.
    code, data = Code(128, 128), bytes(32 << 20)
    started, ended, counted = threading.Event(), threading.Event(), []

    def count():
        started.wait()
        while not ended.is_set():
            counted.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    started.set()
    begin = time.perf_counter()
    code.recovery([data[index << 18 : (index + 1) << 18] for index in range(128)])
    end = time.perf_counter()
    ended.set()
    counter.join()
    assert sum(begin < moment < end for moment in counted) >= 3


def test_one_code_serves_many_threads():
    code, results = Code(10, 4), {}

    def work(seed):
        data = random.Random(seed).randbytes(500_000 + seed)
        shards = code.encode(data)
        results[seed] = code.decode(dict(list(enumerate(shards))[4:]), len(data)) == data

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert results == dict.fromkeys(range(8), True)
