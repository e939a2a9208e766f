# SPDX-License-Identifier: BSD-3-Clause
"""A plugin that lacks a member, or counts what is not there, is refused: path and member named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import etx_runtime
import pytest
from building import call
from conftest import INCLUDE

PACKAGE = Path(etx_runtime.__file__).parent
LIBRARIES = PACKAGE / "lib"
PLACES = {
    "etx_plugin": ("plugin", ""),
    "etx_kernel_table": ("tables[1]", "tables[1]->"),
    "etx_kernel": ("rows[1]", "tables[0]->rows[1]."),
    "etx_backend": ("backends[1]", "backends[1]->"),
}
"""Structs that a plugin returns: where the plugin below has one, and how messages begin."""
MAY_BE_NULL = {
    "etx_kernel.dtypes",
    "etx_backend.user",
    "etx_backend.is_available",
    "etx_backend.destroy",
}
GARBAGE = ("0", "(size_t)-1", "(size_t)1 << 40")

SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <etx/abi.h>

static etx_status run(etx_context* context, etx_value* const* args) {
  (void)context; (void)args;
  return 0;
}
static etx_status init(const etx_backend* self, etx_init_context* context, const void* blob,
                       size_t size, const etx_compile_spec* specs, size_t num_specs,
                       void** handle) {
  (void)self; (void)context; (void)blob; (void)size; (void)specs; (void)num_specs;
  *handle = 0;
  return 0;
}
static etx_status execute(const etx_backend* self, void* handle, etx_context* context,
                          etx_value* const* args, size_t num_args) {
  (void)self; (void)handle; (void)context; (void)args; (void)num_args;
  return 0;
}
static bool is_available(const etx_backend* self) { return self != 0; }
static void destroy(const etx_backend* self, void* handle) { (void)self; (void)handle; }

__attribute__((visibility("default"))) const etx_plugin* etx_plugin_v1(void) {
  const char* change = getenv("ETX_TEST_CHANGE");
  etx_plugin* plugin = calloc(1, sizeof(*plugin));
  etx_kernel* rows = calloc(2, sizeof(*rows));
  etx_kernel_table** tables = calloc(2, sizeof(*tables));
  etx_backend** backends = calloc(2, sizeof(*backends));
  for (int i = 0; i < 2; ++i) {
    rows[i] = (etx_kernel){"broken::op.out", run, "TsiT!", 0};
    tables[i] = calloc(1, sizeof(**tables));
    *tables[i] = (etx_kernel_table){rows, 2};
    backends[i] = calloc(1, sizeof(**backends));
    *backends[i] = (etx_backend){sizeof(etx_backend), "Broken", 0, is_available, init, execute,
                                 destroy};
  }
  *plugin = (etx_plugin){sizeof(*plugin), ETX_ABI_MAJOR, ETX_ABI_MINOR, "broken", "1",
                         (const etx_kernel_table* const*)tables, 2,
                         (const etx_backend* const*)backends, 2};
  if (change == 0) return plugin;
  CHANGES
  return plugin;
}
"""

THROUGH_PYTHON = """
import json, os, sys
import etx_runtime
messages = {}
for change in sys.argv[2:]:
    os.environ["ETX_TEST_CHANGE"] = change
    try:
        etx_runtime.Runtime.get().load_plugin(sys.argv[1])
        messages[change] = ""
    except etx_runtime.PluginError as error:
        messages[change] = str(error)
    etx_runtime.Runtime.get().operator_registry.operator_names
    etx_runtime.Runtime.get().backend_registry.registered_backend_names
print(json.dumps(messages))
"""

THROUGH_C = """
import ctypes, json, os, sys
library = ctypes.CDLL(sys.argv[1])
library.etx_last_error.restype = ctypes.c_char_p
messages = {}
for change in sys.argv[3:]:
    os.environ["ETX_TEST_CHANGE"] = change
    failed = library.etx_load_plugin(os.fsencode(sys.argv[2]))
    messages[change] = library.etx_last_error().decode() if failed else ""
print(json.dumps(messages))
"""

THROUGH_CPP = """
#include <etx/hosted/log.h>
#include <etx/hosted/plugins.h>
#include <cstdio>
#include <cstdlib>
int main(int count, char** words) {
  etx::set_log_level(ETX_LOG_FATAL);
  for (int i = 2; i < count; ++i) {
    std::string message;
    setenv("ETX_TEST_CHANGE", words[i], 1);
    const bool ok = etx::Plugins::shared().load(words[1], &message) != nullptr;
    std::printf("%s\\t%s\\n", words[i], ok ? "" : message.c_str());
  }
}
"""


def members(struct: str) -> dict[str, str]:
    """Return the declarations of a struct's members by name, as abi.h has them."""
    header = re.sub(r"//.*|/\*.*?\*/", "", (INCLUDE / "etx" / "abi.h").read_text())
    body = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", header, re.DOTALL)
    assert body is not None
    found = {}
    for declaration in body[1].split(";")[:-1]:
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        plain = re.search(r"(\w+)\s*$", declaration)
        assert plain is not None or pointer is not None
        name = pointer[1] if pointer else plain[1]  # type: ignore[index]
        found[name] = " ".join(declaration.split())
    return found


def changes() -> dict[str, str]:
    """Return C code by what it breaks: each member of each struct, and each item of a list."""
    code = {}
    for struct, (place, _) in PLACES.items():
        target = {"plugin": "plugin", "rows[1]": "(&rows[1])"}.get(place, place)
        for name, declaration in members(struct).items():
            member = f"{struct}.{name}"
            if "*" in declaration or declaration.startswith("etx_kernel_fn"):
                code[member] = f"{target}->{name} = 0;"
            elif declaration.startswith("size_t"):
                for value in GARBAGE[1:]:
                    code[f"{member} {value}"] = f"{target}->{name} = {value};"
            elif name != "dtypes":
                code[f"{member} 0"] = f"{target}->{name} = 0;"
                code[f"{member} 65535"] = f"{target}->{name} = 65535;"
            else:
                code[member] = f"{target}->{name} = ~0ull;"
    code |= {f"{name}[1]": f"{name}[1] = 0;" for name in ("tables", "backends")}
    for number, text in enumerate(("TX", "!T", "T!x", "**")):
        code[f"etx_kernel.signature {number}"] = f'rows[1].signature = "{text}";'
    code["etx_kernel.name empty"] = 'rows[1].name = "";'
    code["nothing"] = ";"
    return code


def expected(change: str) -> str:
    """Return what the message of a change must contain; empty where the plugin is loaded."""
    member, _, value = change.partition(" ")
    struct, _, name = member.partition(".")
    if member in {"nothing", *MAY_BE_NULL} or (name == "struct_size" and value == "65535"):
        return ""
    if name in ("abi_major", "abi_minor"):
        return "" if (name, value) == ("abi_minor", "0") else "is built for ETX ABI"
    return f"{PLACES[struct][1]}{name} is " if name else f"{member} is null"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    rows = [f'if (strcmp(change, "{name}") == 0) {{ {c} }}' for name, c in changes().items()]
    (folder / "broken.c").write_text(SOURCE.replace("CHANGES", "\n  ".join(rows)))
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    flags += ["-Wno-incompatible-pointer-types", "-Wno-cast-qual", f"-I{INCLUDE}"]
    library = folder / "broken.so"
    call(os.environ.get("CC", "cc"), *flags, folder / "broken.c", "-o", library)
    return library


def through(front: str, broken: Path) -> dict[str, str]:
    """Load the plugin with each change in turn; return the messages."""
    if front == "python":
        command = [sys.executable, "-c", THROUGH_PYTHON, broken]
    elif front == "c":
        shared = LIBRARIES / "libetx_runtime.so"
        command = [sys.executable, "-c", THROUGH_C, shared, broken]
    else:
        source, program = broken.with_name("load.cpp"), broken.with_name("load")
        source.write_text(THROUGH_CPP)
        libraries = [LIBRARIES / f"lib{name}.a" for name in ("etx_runtime", "etx_core")]
        flags = ["-std=c++17", f"-I{INCLUDE}", "-pthread", "-o", program]
        call(os.environ.get("CXX", "c++"), source, *libraries, *flags, "-ldl")
        command = [program, broken]
    environment = {**os.environ, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": ""}
    words = [*map(str, command), *changes()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    if front != "c++":
        messages: dict[str, str] = json.loads(done.stdout)
        return messages
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("front", ["python", "c", "c++"])
def test_each_member_is_checked(broken: Path, front: str) -> None:
    messages = through(front, broken)
    assert len(messages) == len(changes()) > 25
    for change, message in messages.items():
        part = expected(change)
        assert bool(message) == bool(part), (change, message)
        assert part in message, change
        if part:
            assert message.startswith(f"{broken}: "), change
