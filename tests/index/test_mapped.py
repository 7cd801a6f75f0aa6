from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from engram.index.mapped import PAGE, ArraysWriter, Damaged, MappedArrays

ARRAYS = {
    "a": np.arange(3000, dtype=np.int64),
    "b": np.random.default_rng(1).integers(0, 255, (700, 48), dtype=np.uint8),
    "none": np.empty((0, 5), dtype=np.float32),
    "c": np.linspace(0, 1, 10, dtype=np.float32),
}


def written(path: Path, identity: str = "me") -> Path:
    layout = {name: (array.dtype, array.shape) for name, array in ARRAYS.items()}
    with ArraysWriter(path, identity, {"rows": 7}, layout) as file:
        for name, array in ARRAYS.items():
            file[name][...] = array
        file.finish()
    return path


def everything(path: Path) -> dict[str, np.ndarray]:
    file = MappedArrays(path, "me")
    return {name: file.whole(name).copy() for name in file.names}


def test_arrays_come_back(tmp_path):
    path = written(tmp_path / "x")
    file = MappedArrays(path, "me")
    assert file.facts == {"rows": 7}
    assert file.names == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert file.whole(name).dtype == array.dtype
        np.testing.assert_array_equal(file.whole(name), array)
        assert not len(array) or not file[name].flags.writeable
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_not_finished_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), ArraysWriter(tmp_path / "x", "me", {}, {}):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_another_identity_is_refused(tmp_path):
    path = written(tmp_path / "x", "you")
    with pytest.raises(Damaged):
        MappedArrays(path, "me")


def test_a_missing_file_is_damaged(tmp_path):
    with pytest.raises(Damaged):
        MappedArrays(tmp_path / "none", "me")


def test_only_what_is_asked_for_is_checked(tmp_path):
    path = written(tmp_path / "x")
    raw = bytearray(path.read_bytes())
    at = raw.index(ARRAYS["b"].tobytes()[-PAGE:])
    raw[at] ^= 1
    path.write_bytes(raw)
    file = MappedArrays(path, "me")
    np.testing.assert_array_equal(file.whole("a"), ARRAYS["a"])
    file.check("b", 0, 3)
    file.check_rows("b", np.array([0, 2], dtype=np.uint32))
    with pytest.raises(Damaged):
        file.check("b", 0, 700)
    with pytest.raises(Damaged):
        file.check_rows("b", np.array([1, 615], dtype=np.uint32))


def test_no_changed_byte_goes_unseen(tmp_path, request):
    """Flipped, cut off, made longer: an error, or the arrays that were written."""
    raw = written(tmp_path / "x").read_bytes()
    rng = random.Random(5)
    path = tmp_path / "y"
    refused = 0
    for number in range(request.config.getoption("--mutations")):
        damaged = bytearray(raw)
        match number % 4:
            case 0 | 1:
                at = rng.randrange(len(raw))
                damaged[at] ^= 1 << rng.randrange(8)
            case 2:
                del damaged[rng.randrange(len(raw)) :]
            case 3:
                at, length = rng.randrange(len(raw)), rng.randrange(1, 5000)
                damaged[at : at + length] = rng.randbytes(length)
        path.write_bytes(damaged)
        try:
            found = everything(path)
        except Damaged:
            refused += 1
            continue
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
    # What is between two arrays is nobody's; all else is noticed.
    assert refused > 0.6 * number
