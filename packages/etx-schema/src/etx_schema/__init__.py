# SPDX-License-Identifier: BSD-3-Clause
"""Read and write ``.pte`` and ``.ptd`` files; the ``etx`` command.

A device that runs programs needs only the errors: all else is imported at its first use.
"""

from typing import TYPE_CHECKING, Any

from etx_schema._version import __version__ as __version__
from etx_schema.errors import EtxError as EtxError

if TYPE_CHECKING:
    from etx_schema._generated.program import *  # noqa: F403
    from etx_schema.api import *  # noqa: F403
    from etx_schema.api import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        names = globals()
        if name == "__all__" or not name.startswith("__"):
            public = import_module("etx_schema.api")
            names |= {key: getattr(public, key) for key in ("__all__", *public.__all__)}
        if name not in names:
            raise AttributeError(f"module 'etx_schema' has no attribute '{name}'")
        return names[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
