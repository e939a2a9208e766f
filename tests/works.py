# SPDX-License-Identifier: BSD-3-Clause
"""Something true of each package, run where only its declared requirements are installed."""

from __future__ import annotations

SCHEMA = """
import sys
sys.path.insert(0, ".")
import etx_schema
from programs import add
data = etx_schema.serialize_pte(add())
assert data[4:8] == b"ET12"
again = etx_schema.read_pte(data)
assert again.program.execution_plan[0].operators[0].name == "aten::add"
assert etx_schema.serialize_pte(again) == data
assert not etx_schema.verify(again)
"""

RUNTIME = """
import sys
sys.path.insert(0, ".")
import etx_runtime
from etx_schema import serialize_pte
from programs import add
program = etx_runtime.Runtime.get().load_program(serialize_pte(add()))
assert set(program.method_names) == {"forward"}
try:
    program.load_method("forward")
except etx_runtime.LoadError as error:
    assert "aten::add.out" in str(error), error
else:
    raise AssertionError("a kernel came from nowhere")
"""

KERNELS = """
import sys
sys.path.insert(0, ".")
import etx_runtime
import numpy as np
from etx_schema import serialize_pte
from programs import add
model = etx_runtime.load(serialize_pte(add()))
x = np.arange(5, dtype=np.float32)
assert np.array_equal(model(x, x), x + x)
"""

EXIR = """
import torch
from etx_exir import to_edge
class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y
exported = torch.export.export(Add(), (torch.ones(3), torch.ones(3)))
program = to_edge(exported).to_executorch()
(operator,) = program.executorch_program.execution_plan[0].operators
assert (operator.name, operator.overload) == ("aten::add", "out")
"""

QUANT = """
import torch
from etx_quant import compare, quantize
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
torch.manual_seed(0)
images = [(torch.rand(2, 3, 8, 8),) for _ in range(4)]
assert compare(model, quantize(model, images), images).sqnr > 20
"""

XNNPACK = """
from pathlib import Path
from etx_backend_xnnpack import describe_blob, read_blob, write_blob
from etx_schema import read_pte
pte = read_pte(Path("..", "packages", "etx-backend-xnnpack", "tests", "data", "mobilenet.pte"))
(blob,) = pte.delegates
assert write_blob(read_blob(blob)) == bytes(blob)
assert any("Conv2d" in line for line in describe_blob(blob, pte.named_data)["lines"])
"""

ARM = """
from etx_backend_arm._generated.tosa import DType
from etx_backend_arm.tosa import Graph, read_tosa
graph = Graph()
x = graph.input("x", (1, 4), DType.FP32)
graph.output(graph.clamp(x, 0.0, 6.0, "y", (1, 4)))
data = graph.serialize()
assert data[4:8] == b"TOSA"
assert len(read_tosa(data).regions[0].blocks[0].operators) == 1
"""

DEVTOOLS = """
import sys
sys.path.insert(0, ".")
from etx_devtools import VIEWS, sizes
from etx_schema import serialize_pte
from programs import add
data = serialize_pte(add())
report = sizes(data)
for view in VIEWS:
    assert sum(row.bytes for row in report.by(view)) == len(data)
"""

EXECUTORCH = """
import etx_executorch.exir
import etx_executorch.runtime
for module, name in (("exir", "to_edge"), ("runtime", "Runtime")):
    try:
        exec(f"from etx_executorch.{module} import {name}")
    except ModuleNotFoundError as error:
        assert "which is not installed: pip install etx-" in str(error), error
    else:
        raise AssertionError(f"{name} came from nowhere")
"""

WORKS = {
    "etx-schema": SCHEMA,
    "etx-exir": EXIR,
    "etx-quant": QUANT,
    "etx-runtime": RUNTIME,
    "etx-kernels-portable": KERNELS,
    "etx-backend-xnnpack": XNNPACK,
    "etx-backend-arm": ARM,
    "etx-devtools": DEVTOOLS,
    "etx-executorch": EXECUTORCH,
}
