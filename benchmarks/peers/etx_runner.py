# SPDX-License-Identifier: BSD-3-Clause
"""ETX as runners of the peers' harness: with its portable kernels, from Python or from C, and
through XNNPACK.

Nothing but NumPy is imported at the top: what a process holds is measured. Run as a script with the
name of a model and a file, it lowers the model.
"""

from __future__ import annotations

import ctypes as c
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"float32": 6, "int64": 4}
"""Those of the models' inputs and outputs, as `etx_dtype` of etx/etx.h numbers them."""


class Etx:
    """What the harness asks of a runner: prepare where torch is, then load, bind, run, outputs."""

    name = "etx"
    packages: tuple[str, ...] = ("etx_runtime", "etx_kernels_portable")
    quants: tuple[str | None, ...] = (None, "static", "dynamic")
    precision = "float32"
    group_size: int | None = None  # of weights in int4, in the place of int8

    def __init__(self, out: str) -> None:
        self.file = str(Path(out, "model.pte"))

    def prepare(self, spec: Any, module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """Lower in a process of its own, so that what is measured imports no compiler."""
        command = [sys.executable, "-W", "ignore", __file__, self.name, spec.name, self.file]
        subprocess.run(command, check=True)
        return {"files": ["model.pte"]}

    def load(self, artifact: dict[str, Any], threads: int) -> None:
        import etx_runtime

        etx_runtime.set_num_threads(threads)
        program = etx_runtime.Runtime.get().load_program(self.file)
        self.call = program.load_method("forward").flat_caller(borrow=True)

    def bind(self, inputs: list[np.ndarray]) -> None:
        self.inputs = [np.ascontiguousarray(x) for x in inputs]

    def run(self) -> None:
        self.results = self.call(*self.inputs)

    def outputs(self) -> list[np.ndarray]:
        several = isinstance(self.results, (tuple, list))
        return list(self.results) if several else [self.results]


class Output(c.Structure):
    """`etx_output` of etx/etx.h."""

    _fields_ = [("struct_size", c.c_size_t), ("tag", c.c_uint32), ("dtype", c.c_int32),
                ("rank", c.c_uint32), ("reserved", c.c_uint32), ("sizes", c.POINTER(c.c_int32)),
                ("strides", c.POINTER(c.c_int32)), ("data", c.c_void_p), ("nbytes", c.c_size_t),
                ("as_int", c.c_int64), ("as_double", c.c_double)]  # fmt: skip


class EtxC(Etx):
    """The same through the C interface: no module of ETX is imported."""

    name = "etx_c"
    packages = ("etx_runtime/lib", "etx_kernels_portable")
    quants = (None,)

    def check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self.library.etx_last_error().decode())

    def load(self, artifact: dict[str, Any], threads: int) -> None:
        runtime, kernels = (str(Path(str(find_spec(name).origin)).parent) for name in Etx.packages)
        self.library = c.CDLL(f"{runtime}/lib/libetx_runtime.so")
        self.library.etx_last_error.restype = c.c_char_p
        self.library.etx_set_num_threads(threads)
        self.check(self.library.etx_load_plugin(f"{kernels}/etx_kernels_portable.so".encode()))
        program, self.method = c.c_void_p(), c.c_void_p()
        path = self.file.encode()
        self.check(self.library.etx_program_load_file(path, None, c.byref(program)))
        self.check(self.library.etx_method_load(program, b"forward", c.byref(self.method)))
        self.execute = self.library.etx_method_execute

    def bind(self, inputs: list[np.ndarray]) -> None:
        super().bind(inputs)
        for i, x in enumerate(self.inputs):
            sizes, dtype = (c.c_int32 * x.ndim)(*x.shape), DTYPES[str(x.dtype)]
            place = self.method, c.c_size_t(i), c.c_void_p(x.ctypes.data)
            shape = c.c_size_t(x.ndim), sizes, None
            self.check(self.library.etx_method_set_tensor(*place, dtype, *shape))

    def run(self) -> None:
        self.check(self.execute(self.method))

    def outputs(self) -> list[np.ndarray]:
        found = []
        for i in range(self.library.etx_method_num_outputs(self.method)):
            y = Output(c.sizeof(Output))
            place = self.method, c.c_size_t(i), c.byref(y)
            self.check(self.library.etx_method_get_output(*place))
            dtype = next(name for name, number in DTYPES.items() if number == y.dtype)
            numbers = np.frombuffer(c.string_at(y.data, y.nbytes), dtype)
            found.append(numbers.reshape(y.sizes[: y.rank]).copy())
        return found


class EtxXnnpack(Etx):
    """The same with what XNNPACK can compute in its delegate."""

    name = "etx_xnnpack"
    packages = (*Etx.packages, "etx_backend_xnnpack")


class EtxBf16(Etx):
    """The portable kernels with the weights of layers in bfloat16."""

    name = "etx_bf16"
    quants = (None,)
    precision = "bf16"


class EtxInt4(Etx):
    """The portable kernels with int4 weights in groups, of models in dynamic int8."""

    name = "etx_int4"
    quants = ("dynamic",)
    group_size = 128


class EtxXnnpackInt4(EtxXnnpack):
    """The same weights through XNNPACK."""

    name = "etx_xnnpack_int4"
    quants = EtxInt4.quants
    group_size = EtxInt4.group_size


KINDS = (Etx, EtxC, EtxXnnpack, EtxBf16, EtxInt4, EtxXnnpackInt4)
RUNNERS = {kind.name: kind for kind in KINDS}


def quantized(module: Any, inputs: tuple[Any, ...], kind: str, group_size: int | None) -> Any:
    """Quantize as the harness does for its other runners: int8, a scale for each channel. With a
    group size weights are int4."""
    from etx_quant import XNNPACKQuantizer, get_symmetric_quantization_config, quantize
    from runners import _calib

    if group_size is not None:
        return quantize(module, _calib(inputs), recipe="int4", group_size=group_size)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=kind == "dynamic")
    return quantize(module, _calib(inputs), XNNPACKQuantizer().set_global(config))


def lower(runner: str, model: str, path: str) -> None:
    """Lower a model of the harness; inputs are read where they lie, as with its other runners."""
    import torch
    from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, to_edge_transform_and_lower
    from models import MODELS

    kind, partitioner = RUNNERS[runner], None
    if issubclass(kind, EtxXnnpack):
        from etx_backend_xnnpack.partition import XnnpackPartitioner

        partitioner = [XnnpackPartitioner()]
    spec = MODELS[model]
    module, inputs = spec.make()
    plan = MemoryPlanningPass(alloc_graph_input=False)
    with torch.no_grad():
        if spec.quant is not None:
            module = quantized(module, inputs, spec.quant, kind.group_size)
        program = torch.export.export(module, inputs, strict=False)
        edge = to_edge_transform_and_lower(program, partitioner=partitioner)
        config = ExecutorchBackendConfig(memory_planning_pass=plan, precision=kind.precision)
        edge.to_executorch(config).save(path)


if __name__ == "__main__":
    lower(sys.argv[1], sys.argv[2], sys.argv[3])
