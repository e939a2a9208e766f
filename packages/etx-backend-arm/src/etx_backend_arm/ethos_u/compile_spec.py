# SPDX-License-Identifier: BSD-3-Clause
"""Which Ethos-U a program is compiled for, and how Vela is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from etx_exir import CompileSpec
from etx_exir.errors import BackendError

__all__ = ["TARGETS", "EthosUCompileSpec"]

CONFIGURATIONS = {
    "ethos-u55": ((32, 64, 128, 256), "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u65": ((256, 512), "Ethos_U65_High_End", "Shared_Sram"),
    "ethos-u85": ((128, 256, 512, 1024, 2048), "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}
"""Of each family the numbers of MACs, and the system configuration and memory mode by default."""
TARGETS = tuple(f"{name}-{macs}" for name, row in CONFIGURATIONS.items() for macs in row[0])
KEYS = ("target", "system_config", "memory_mode", "config_ini", "extra_flags")


@dataclass(frozen=True)
class EthosUCompileSpec:
    """A target such as ``ethos-u55-128``, and sections of Vela's configuration file.

    ``config_ini`` is a file, or a name of Vela's own (``Arm/vela.ini``); ``extra_flags`` are given
    to Vela as they are. Raises BackendError for a target that is not known.
    """

    target: str
    system_config: str | None = None
    memory_mode: str | None = None
    extra_flags: Sequence[str] = field(default_factory=tuple)
    config_ini: str = "Arm/vela.ini"

    def __post_init__(self) -> None:
        """Refuse unknown targets."""
        if self.target not in TARGETS:
            raise BackendError(
                f"Ethos-U target {self.target!r}; expected one of {', '.join(TARGETS)}"
            )

    @property
    def family(self) -> str:
        """Return the target without its number of MACs."""
        return self.target.rpartition("-")[0]

    @property
    def has_narrow_tables(self) -> bool:
        """Tell whether TABLE takes int8 only."""
        return self.family != "ethos-u85"

    @property
    def flags(self) -> list[str]:
        """Return the arguments of Vela."""
        _, system, memory = CONFIGURATIONS[self.family]
        return [
            f"--accelerator-config={self.target}",
            f"--config={self.config_ini}",
            f"--system-config={self.system_config or system}",
            f"--memory-mode={self.memory_mode or memory}",
            *self.extra_flags,
        ]

    def to_list(self) -> list[CompileSpec]:
        """Return the compile specs of a delegate."""
        given = {"target": self.target, "config_ini": self.config_ini}
        for key in ("system_config", "memory_mode"):
            if (value := getattr(self, key)) is not None:
                given[key] = value
        if self.extra_flags:
            given["extra_flags"] = " ".join(self.extra_flags)
        return [CompileSpec(key, value.encode()) for key, value in given.items()]

    @classmethod
    def from_list(cls, specs: Sequence[CompileSpec]) -> EthosUCompileSpec:
        """Return what compile specs say; raises BackendError for keys that are not known."""
        given: dict[str, str] = {
            spec.key or "": spec.value.decode() for spec in specs if spec.key != "vela"
        }
        unknown = [key for key in given if key not in KEYS]
        if unknown:
            raise BackendError(
                f"EthosUBackend has no option {unknown[0]!r}; it has {', '.join(KEYS)}"
            )
        if "target" not in given:
            raise BackendError(f"EthosUBackend: target=... is missing: one of {', '.join(TARGETS)}")
        flags = given.pop("extra_flags", "").split()
        target = given.pop("target")
        return cls(target, **given, extra_flags=tuple(flags))
