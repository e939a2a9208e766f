# SPDX-License-Identifier: BSD-3-Clause
"""Data that a backend stores by name: in the file, beside it, from tensors and from files."""

import io
import os
import tempfile
from pathlib import Path

import pytest
import torch
from executorch.exir import to_edge
from executorch.exir._serialize._cord import Cord, FileBackedData
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.all_node_partitioner import AllNodePartitioner


class Backend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        store = NamedDataStore()
        store.add_named_data("inside", b"abcd", 8)
        store.add_named_data("alias", b"abcd", 16)
        store.add_named_data("outside", torch.arange(3.0), external_tag="weights")
        return PreprocessResult(b"\1", data_store_output=store.get_named_data_store_output())


exported = torch.export.export(torch.nn.ReLU().eval(), (torch.ones(2),))
done = to_edge(exported).to_backend(AllNodePartitioner("Backend", [])).to_executorch()
assert bytes(done.pte_file.named_data["inside"].data) == b"abcd"
assert done.pte_file.named_data["alias"].alignment == 16
with tempfile.TemporaryDirectory() as folder:
    done.write_tensor_data_to_file(folder)
    assert torch.arange(3.0).numpy().tobytes() in (Path(folder) / "weights.ptd").read_bytes()

# Equal bytes once; a name has one content, one place and one layout.
store = NamedDataStore()
for key in "ba":
    store.add_named_data(key, b"x" * 6)
store.add_named_data("c", b"y" * 5)
assert [len(data) for data in store.buffers] == [6, 5]
with pytest.raises(ValueError, match="different content"):
    store.add_named_data("a", b"other")
with pytest.raises(ValueError, match="two places"):
    store.add_named_data("a", b"x" * 6, 1, "elsewhere")
with pytest.raises(ValueError, match="not those of a dense layout"):
    store.add_named_data("t", torch.ones(2, 3).t())
assert len(store.buffers) == 2

# Out of the file, in pieces that are not too large.
with pytest.raises(ValueError, match="exceeds"):
    store.externalize_pte_data(5, "part")
store.externalize_pte_data(10, "part")
first, second = store.get_named_data_store_output().external_data.values()
assert (sorted(first), sorted(second), store.pte_data) == (["a", "b"], ["c"], {})

# A file that is taken over is written from where it lies.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "blob"
    path.write_bytes(b"in a file")
    with FileBackedData.move_from(path) as data:
        assert not path.exists()
        cord = Cord(b"head ")
        cord.append(data)
        out = io.BytesIO()
        cord.write_to_file(out)
        assert out.getvalue() == bytes(cord) == b"head in a file"
        assert len(cord) == 14
    assert os.listdir(folder) == []
