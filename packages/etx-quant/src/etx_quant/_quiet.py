# SPDX-License-Identifier: BSD-3-Clause
"""Import torchao without what it says of its CUDA kernels and its enums, which ETX does not use.

An import that fails raises as ever; what is dropped is logged for debugging.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = {"torchao": "Failed to load ", "torch.utils._pytree": "is an Enum subclass"}


class _Quieter(logging.Filter):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def filter(self, record: logging.LogRecord) -> bool:
        if self.text not in record.getMessage():
            return True
        logging.getLogger("etx_quant").debug("%s", record.getMessage())
        return False


@contextmanager
def quiet() -> Iterator[None]:
    """Drop these messages for a while."""
    filters = {logging.getLogger(name): _Quieter(text) for name, text in NOISE.items()}
    for logger, found in filters.items():
        logger.addFilter(found)
    try:
        yield
    finally:
        for logger, found in filters.items():
            logger.removeFilter(found)


with quiet():
    import torchao.quantization.pt2e
    import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401
