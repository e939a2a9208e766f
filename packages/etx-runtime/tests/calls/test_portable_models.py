# SPDX-License-Identifier: BSD-3-Clause
"""Models tell what they are, travel to other processes, and fail when they are loaded."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import ForeignArray, LoadError, Runtime
from programs import Builder, addition, counter

ONE = np.ones(1, np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def foreign(dtype: es.ScalarType, bits: Any) -> bytes:
    """A program that returns a constant of a type that NumPy lacks, and its input."""
    b = Builder()
    constant = b.tensor(bits.shape, dtype, memory="constant", data=bits.tobytes())
    b.output(constant, b.input(b.tensor((2,))))
    return b.serialize()


def test_repr_tells_names_shapes_and_dtypes(runtime: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "add.pte"
    b = Builder()
    x, y, out = b.tensor((2, 3)), b.tensor((2, 3), dynamic=True), b.tensor((2, 3))
    b.input(x), b.input(y), b.input(b.int(3)), b.output(out)
    b.add(x, y, out)
    b.constraints(["left", "right", "n"], [[None, None], [None, None], []])
    path.write_bytes(b.serialize())
    row = "forward(left: float32[2, 3], right: float32[<=2, <=3], n: int) -> output: float32[2, 3]"
    model = etx_runtime.load(path)
    assert repr(model) == f"Model\n  {row}"
    assert repr(model.program) == f"Program of {str(path)!r}\n  {row}"
    assert repr(model.method()) == f"Method {row}"
    meta = model.method().metadata
    assert repr(meta) == "MethodMeta(forward(float32[2, 3], float32[<=2, <=3], int) -> " + (
        "(float32[2, 3]))"
    )
    assert repr(meta.input_tensor_meta(1)) == "TensorInfo(float32[<=2, <=3])"
    info = etx_runtime.load(counter()).method().metadata.attribute_tensor_meta(0)
    assert repr(info) == "TensorInfo(count: float32[1])"


def sources(path: Path) -> dict[str, Any]:
    path.write_bytes(counter())
    return {
        "path": path,
        "relative": path.name,
        "bytes": counter(),
        "bytearray": bytearray(counter()),
        "file": io.BytesIO(counter()),
    }


@pytest.mark.parametrize("kind", ["path", "relative", "bytes", "bytearray", "file"])
def test_models_pickle_with_their_state(
    kind: str, runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = sources(tmp_path / "c.pte")[kind]
    model = etx_runtime.load(source)
    fresh = pickle.dumps(model)
    assert model(ONE) == 6
    if kind == "bytearray":
        source[:] = bytes(len(source))
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again(ONE) == 7
    monkeypatch.chdir("/")
    assert pickle.loads(fresh)(ONE) == 6
    assert pickle.loads(pickle.dumps(model.program)).load_method("forward").execute([ONE])[0] == 6
    with pytest.raises(TypeError, match="pickle its Program, or a Model"):
        pickle.dumps(model.method())


def test_models_go_to_other_processes(
    runtime: Runtime, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETX_PLUGIN_PATHS", str(plugin))
    models = [etx_runtime.load(addition()), etx_runtime.load(addition(), outputs="numpy")]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for model in models:
            (found,) = pool.starmap(model, [(X, X)])
            assert np.array_equal(found, X + X)


@pytest.mark.parametrize("others", [0, 1])
def test_a_missing_kernel_is_told_at_load(others: int, runtime: Runtime) -> None:
    builders = [Builder("forward"), *(Builder(f"m{i}") for i in range(others))]
    for b in builders:
        x = b.input(b.tensor((2,)))
        b.call("aten::rare.out", x, x)
        b.call(f"aten::{b.plan.name}.out", x, x)
        b.output(x)
    data = builders[0].serialize(*builders[1:])
    with pytest.raises(LoadError) as caught:
        etx_runtime.load(data)
    text = str(caught.value)
    for b in builders:
        assert f"no kernel for 2 operators: aten::rare.out, aten::{b.plan.name}.out" in text
        assert f"method {b.plan.name}: " in text or not others
    assert "etx-kernels-portable" in text
    assert caught.value.code == 0x14
    assert Runtime.get().load_program(data).method_names == {b.plan.name for b in builders}


def test_a_missing_backend_is_told_at_load(runtime: Runtime) -> None:
    b = Builder()
    b.delegates.append(b"blob")
    reference = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    b.plan.delegates.append(
        es.BackendDelegate(id="XnnpackBackend", processed=reference, compile_specs=[])
    )
    x = b.input(b.tensor((2,)))
    b.instruction(es.DelegateCall(delegate_index=0, args=[x]))
    b.output(x)
    with pytest.raises(
        LoadError, match=r"XnnpackBackend: no backend .*NotFound \(0x20\)"
    ) as caught:
        etx_runtime.load(b.serialize())
    assert "install the package of the backend" in str(caught.value)
    assert "lower the model without this backend" in str(caught.value)


BFLOAT = np.array([[0x3F80, 0x4020], [0xFF80, 0x7FC0]], np.uint16)
NUMBERS = [[1.0, 2.5], [-np.inf, np.nan]]


def test_bfloat16_is_usable(runtime: Runtime) -> None:
    data = foreign(es.ScalarType.BFLOAT16, BFLOAT)
    found, same = etx_runtime.load(data)(ONE.repeat(2))
    assert isinstance(found, ForeignArray)
    assert isinstance(same, np.ndarray)
    assert repr(found) == "array([[ 1. ,  2.5],\n       [-inf,  nan]], dtype=bfloat16)"
    np.testing.assert_array_equal(np.asarray(found, np.float32), NUMBERS)
    np.testing.assert_array_equal(np.asarray(found + 1, np.float32), np.add(NUMBERS, 1))
    np.testing.assert_array_equal(np.asarray(np.abs(found[0]), np.float32), [1, 2.5])
    assert (found.shape, found.ndim, found.size, found.nbytes, len(found)) == ((2, 2), 2, 4, 8, 2)
    assert (float(found[0, 1]), int(found[0, 1]), bool(found[0, 0])) == (2.5, 2, True)
    assert found[0].tolist() == [1.0, 2.5]
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)
    again = etx_runtime.load(data, outputs="numpy")(ONE.repeat(2))[0]
    assert isinstance(again, np.ndarray)
    np.testing.assert_array_equal(again.astype(np.float32), NUMBERS)


def test_a_foreign_array_goes_back_in(runtime: Runtime) -> None:
    b = Builder()
    b.output(b.input(b.tensor((2, 2), es.ScalarType.BFLOAT16)))
    model = etx_runtime.load(b.serialize())
    given = ForeignArray(BFLOAT, "bfloat16")
    assert np.array_equal(model(given).bits, BFLOAT)
    assert np.array_equal(model(ForeignArray(BFLOAT.T, "bfloat16")).bits, BFLOAT.T)


FLOAT8 = {
    "FLOAT8E5M2": [(0x3C, 1.0), (0xBD, -1.25), (0x01, 2**-16), (0x7C, np.inf), (0x7E, np.nan)],
    "FLOAT8E4M3FN": [(0x38, 1.0), (0xB9, -1.125), (0x01, 2**-9), (0x7E, 448), (0x7F, np.nan)],
    "FLOAT8E5M2FNUZ": [(0x40, 1.0), (0xC1, -1.25), (0x01, 2**-17), (0x7F, 57344), (0x80, np.nan)],
    "FLOAT8E4M3FNUZ": [(0x40, 1.0), (0xC1, -1.125), (0x01, 2**-10), (0x7F, 240), (0x80, np.nan)],
}


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(name: str, runtime: Runtime) -> None:
    dtype = es.ScalarType[name]
    bits, expected = zip(*FLOAT8[name], strict=True)
    b = Builder()
    raw = np.array(bits, np.uint8)
    tensor = es.Tensor(scalar_type=dtype, sizes=[5], dim_order=[0], data_buffer_idx=1)
    b.constants.append(raw.tobytes())
    b.output(b.value(tensor))
    found = etx_runtime.load(b.serialize())()
    assert found.dtype == name.lower().replace("float8", "float8_")
    np.testing.assert_array_equal(np.asarray(found, np.float32), expected)


def test_outputs_of_another_kind_are_refused(runtime: Runtime) -> None:
    with pytest.raises(ValueError, match="expected 'numpy' or 'torch', got 'jax'"):
        etx_runtime.load(counter(), outputs="jax")
    with pytest.raises(ValueError, match="borrow lends read-only memory"):
        etx_runtime.load(counter(), outputs="torch", borrow=True)


def test_an_input_that_the_program_changes_is_left_as_it_was(runtime: Runtime) -> None:
    b = Builder()
    x, y = b.input(b.tensor((2, 3))), b.input(b.tensor((2, 3)))
    b.add(x, y, x)
    b.output(x)
    given = X.copy()
    assert np.array_equal(etx_runtime.load(b.serialize())(given, X), X + X)
    assert np.array_equal(given, X)
