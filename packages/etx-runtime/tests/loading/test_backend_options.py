# SPDX-License-Identifier: BSD-3-Clause
"""What a load asks of a backend reaches its init; older plugins work as before, without options."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from conftest import compile_plugin
from etx_runtime import LoadError, Runtime
from programs import Builder

X = np.array([1, 2, 3], np.float32)


def delegate(name: str) -> bytes:
    b = Builder()
    x, out = b.input(b.tensor((3,))), b.tensor((3,))
    reference = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    b.plan.delegates.append(es.BackendDelegate(id=name, processed=reference, compile_specs=[]))
    b.delegates.append(b"\x01")
    b.instruction(es.DelegateCall(delegate_index=0, args=[x, out]))
    b.output(out)
    return b.serialize()


class Adder:
    """Adds its option `bias`."""

    def init(self, blob: bytes, specs: etx_runtime.CompileSpecs) -> dict[str, Any]:
        unknown = [key for key in specs.options if key not in ("bias", "name", "negative")]
        if unknown:
            raise ValueError(f"no option {unknown[0]!r}")
        return dict(specs.options)

    def execute(self, handle: dict[str, Any], args: list[Any]) -> None:
        args[1][:] = args[0] + handle.get("bias", 0) * (-1 if handle.get("negative") else 1)


@pytest.fixture
def adder() -> Iterator[bytes]:
    etx_runtime.register_backend("Adder", Adder())
    yield delegate("Adder")
    etx_runtime.unregister("Adder")


def test_options_reach_the_backend(adder: bytes, runtime: Runtime) -> None:
    def asked(**options: bool | int | str) -> Any:
        return etx_runtime.load(adder, backend_options={"Adder": options})

    np.testing.assert_array_equal(asked()(X), X)
    model = asked(bias=2**40, negative=True, name="n")
    np.testing.assert_array_equal(model(X), X - np.float32(2**40))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(X), X - np.float32(2**40))
    method = runtime.load_program(adder).load_method(
        "forward", backend_options={"Adder": {"bias": 3}}
    )
    np.testing.assert_array_equal(method.execute([X])[0], X + 3)
    with pytest.raises(LoadError, match="no option 'other'"):
        asked(other=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Addr": {"bias": 1}}, r"there is no backend 'Addr'; there are .*Adder"),
        ({"Adder": {"bias": 1.5}}, r"\['Adder'\]\['bias'\]: expected a bool, an int .*, got 1.5"),
        ({"Adder": {"bias": 2**63}}, "an int of 64 bits or a str, got 9223372036854775808"),
        ({"Adder": 3}, r"backend_options\['Adder'\]: expected a mapping, got 3"),
        (3, r"backend_options: expected a mapping by backend, got 3"),
        ({f"{i}": {"bias": 1} for i in range(9)}, "more than 8 backends"),
    ],
)
def test_what_is_refused(adder: bytes, options: Any, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        etx_runtime.load(adder, backend_options=options)


SOURCE = """
#include <cstring>
#include <etx/abi.h>
namespace {
int64_t bias = 0;
etx_status init(const etx_backend*, etx_init_context* context, const void*, size_t,
                const etx_compile_spec*, size_t, void** handle) {
  *handle = nullptr;
#if MINOR >= 4
  for (size_t i = 0; i < context->num_options; ++i) {
    const etx_option& option = context->options[i];
    if (std::strcmp(option.key, "bias") != 0 || option.value.tag != ETX_TAG_INT) {
      return context->fail(context, 0x12, "expected an int 'bias'");
    }
    bias = option.value.payload.as_int;
  }
#endif
  return context->struct_size < 64 ? 1 : 0;
}
etx_status execute(const etx_backend*, void*, etx_context*, etx_value* const* args, size_t) {
  const float* x = static_cast<const float*>(args[0]->payload.as_tensor->data);
  float* out = static_cast<float*>(args[1]->payload.as_tensor->data);
  for (int i = 0; i < 3; ++i) out[i] = x[i] + static_cast<float>(bias);
  return 0;
}
const etx_backend backend = {sizeof(etx_backend), "Native", nullptr, nullptr, init, execute,
                             nullptr};
const etx_backend* const backends[] = {&backend};
}  // namespace
extern "C" __attribute__((visibility("default"))) const etx_plugin* etx_plugin_v1() {
  static const etx_plugin plugin = {sizeof(etx_plugin), 1, MINOR, "native", "1", nullptr, 0,
                                    backends, 1};
  return &plugin;
}
"""

LOADS = """
import sys
import etx_runtime
etx_runtime.Runtime.get().load_plugin(sys.argv[1])
for options in (None, {"Native": {"bias": 5}}, {"Native": {"bias": "5"}}):
    try:
        model = etx_runtime.load(sys.argv[2], backend_options=options)
        print([float(each) for each in model(memoryview(b"\\0" * 12).cast("f"))])
    except etx_runtime.LoadError as error:
        print(error)
"""


@pytest.mark.parametrize("minor", [0, 3, 4])
def test_plugins_of_older_abis(tmp_path: Path, minor: int) -> None:
    source = tmp_path / "plugin.cpp"
    source.write_text(f"#define MINOR {minor}\n{SOURCE}")
    library = compile_plugin(source, tmp_path / "libnative.so")
    program = tmp_path / "native.pte"
    program.write_bytes(delegate("Native"))
    command = [sys.executable, "-c", LOADS, str(library), str(program)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "[0.0, 0.0, 0.0]"
    if minor == 4:
        assert lines[1] == "[5.0, 5.0, 5.0]"
        assert "expected an int 'bias'" in lines[2]
    else:
        refused = f"backend 'Native' takes none: native is built for ETX ABI 1.{minor}"
        assert all(refused in line for line in lines[1:])
