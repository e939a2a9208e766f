// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_BLOB_H_
#define ETX_XNNPACK_BLOB_H_

#include <etx/abi.h>

#include "graph.h"

namespace etx_fbs::xnnpack {
struct Graph;
}

namespace etx::xnnpack {

/// The parts of a blob: a header, a flatbuffer and constants, or (old files) the flatbuffer only.
struct Blob {
  const etx_fbs::xnnpack::Graph* graph;
  const uint8_t* constants;
  size_t constants_size;
};

/// Checks header and flatbuffer. Errors: InvalidProgram, DelegateInvalidCompatibility.
Error read_blob(const void* data, size_t size, Blob* blob);

/// Where the bytes of a constant lie. Errors: InvalidProgram, those of named data.
Error find_constant(const Blob& blob, etx_init_context* context, uint32_t index, const void** data,
                    size_t* size);

/// Reads values, then nodes, and checks that they fit each other and XNNPACK. What `graph` points
/// at are bytes of the blob and of named data.
/// Errors: InvalidProgram, NotSupported, MemoryAllocationFailed, those of named data.
Error read_graph(const Blob& blob, etx_init_context* context, Graph* graph);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_BLOB_H_
