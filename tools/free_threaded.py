# SPDX-License-Identifier: BSD-3-Clause
"""Check that this Python has no GIL, that etx-runtime was built for it, and that it stays without.

Prints the version of Python and the tag of the wheel.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.metadata import distribution


def main() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit(f"{sys.executable} ({sys.version.split()[0]}) is not a free-threaded Python")
    wheel = distribution("etx-runtime").read_text("WHEEL") or ""
    tags = [line.split()[1] for line in wheel.splitlines() if line.startswith("Tag:")]
    abi = f"cp{sys.version_info.major}{sys.version_info.minor}t"
    if not any(abi in tag.split("-") for tag in tags):
        sys.exit(f"the wheel of etx-runtime is tagged {', '.join(tags)}; expected {abi}")
    import etx_runtime

    is_enabled = sys._is_gil_enabled()  # type: ignore[attr-defined]
    if is_enabled:
        sys.exit(f"importing etx_runtime {etx_runtime.__version__} brought the GIL back")
    print(f"{sys.version.split()[0]} without GIL, {', '.join(tags)}")


if __name__ == "__main__":
    main()
