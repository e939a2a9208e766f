# SPDX-License-Identifier: BSD-3-Clause
"""On the build host: `python demo/export.py FOLDER` writes minilm.pte, minilm_int8.pte and what to
compare them with."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import minilm
import numpy as np
import torch
from etx_exir import to_edge_transform_and_lower
from etx_quant import (
    Int8Quantizer,
    get_embedding_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from sentences import QUERY, SENTENCES
from tokenizers import Tokenizer


@contextmanager
def step(text: str) -> Iterator[None]:
    print(f"  {text} ...", end="", flush=True)
    start = time.monotonic()
    yield
    print(f" {time.monotonic() - start:.1f} s", flush=True)


def write(exported: torch.export.ExportedProgram, path: Path) -> None:
    with step("lowering"):
        lowered = to_edge_transform_and_lower(exported).to_executorch()
    with step(f"writing {path.name}"):
        lowered.save(path)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print("build host: all-MiniLM-L6-v2, from PyTorch to a file", flush=True)
    with step("loading the trained weights"):
        model = minilm.load()
        shutil.copy(minilm.weights_folder() / "tokenizer.json", folder)
    with step("torch.export, 1 to 512 tokens"):
        inputs, shapes = minilm.example()
        exported = torch.export.export(model, inputs, dynamic_shapes=shapes)
    write(exported, folder / "minilm.pte")
    with step("int8 weights, activations rounded row by row as they come"):
        quantizer = Int8Quantizer().set_global(get_weight_quantization_config(is_dynamic=True))
        quantizer.set_operator_type(torch.ops.aten.embedding, get_embedding_quantization_config())
        quantized = quantize(model, [inputs], quantizer, dynamic_shapes=shapes)
        exported = torch.export.export(quantized, inputs, dynamic_shapes=shapes)
    write(exported, folder / "minilm_int8.pte")
    with step("eager's answers"), torch.no_grad():
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokens = [tokenizer.encode(text).ids for text in (*SENTENCES, QUERY)]
        eager = np.concatenate([model(torch.tensor([ids])).numpy() for ids in tokens])
        np.savez(folder / "eager.npz", embeddings=eager)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
