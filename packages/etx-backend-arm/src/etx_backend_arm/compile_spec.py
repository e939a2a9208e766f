# SPDX-License-Identifier: BSD-3-Clause
"""What a program is lowered for, and its form as compile specs of a delegate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etx_exir import CompileSpec
from etx_exir.errors import BackendError

from etx_backend_arm.nodes import Profile

__all__ = ["TosaCompileSpec"]

VERSION = "TOSA-1.0"
KEY = "tosa_spec"
EXTENSIONS = ("int16", "int4", "bf16")


@dataclass(frozen=True)
class TosaCompileSpec:
    """A version and profiles of TOSA: ``TOSA-1.0+INT``, ``TOSA-1.0+FP`` or ``TOSA-1.0+INT+FP``.

    Of both profiles INT is for what is quantized, FP for the rest. Behind them may stand extensions
    of INT, ``int16`` for activations and ``int4`` for weights, and of FP, ``bf16``. Raises
    BackendError for others.
    """

    tosa_spec: str = "TOSA-1.0+INT+FP"

    def __post_init__(self) -> None:
        """Refuse what is not a version and its profiles."""
        version, *names = self.tosa_spec.split("+")
        known = [profile.value for profile in Profile]
        if version != VERSION or not set(names) & set(known) or set(names) - {*known, *EXTENSIONS}:
            raise BackendError(
                f"TOSA specification {self.tosa_spec!r}; expected {VERSION}+INT, {VERSION}+FP or "
                f"{VERSION}+INT+FP, and extensions such as {VERSION}+INT+{'+'.join(EXTENSIONS)}"
            )

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Return the profiles that a program may use."""
        names = self.tosa_spec.split("+")[1:]
        return tuple(profile for profile in Profile if profile.value in names)

    def has(self, extension: str) -> bool:
        """Tell whether a program may use an extension."""
        return extension in self.tosa_spec.split("+")

    def to_list(self) -> list[CompileSpec]:
        """Return the compile specs of a delegate."""
        return [CompileSpec(KEY, self.tosa_spec.encode())]

    @classmethod
    def from_list(cls, specs: Sequence[CompileSpec]) -> TosaCompileSpec:
        """Return what compile specs say; raises BackendError for keys that are not known."""
        for spec in specs:
            if spec.key != KEY:
                raise BackendError(f"TOSABackend has no option {spec.key!r}; it has {KEY!r}")
        return cls(specs[0].value.decode()) if specs else cls()
