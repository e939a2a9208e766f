// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ETHOS_U_BLOB_H_
#define ETX_ETHOS_U_BLOB_H_

#include <cstddef>
#include <cstdint>

#include "ethos_u/fault.h"

namespace etx::npu {

/// Bytes of a blob.
struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

/// Where an input or output lies in a region.
struct Port {
  uint64_t bytes;
  uint32_t element_size;
  uint32_t offset;
  uint32_t region;
};

/// The blob of EthosUBackend (docs/ethos-u-blob.md), read in place.
struct Blob {
  Bytes commands;
  Bytes weights;  ///< A key into named data where `weights_are_named`.
  Bytes inputs;
  Bytes outputs;
  size_t scratch_size = 0;
  bool weights_are_named = false;

  /// Checks all lengths.
  static Fault read(const void* data, size_t size, Blob* blob);

  static size_t count(const Bytes& ports) { return (ports.size - 4) / 36; }
  static Port port(const Bytes& ports, size_t index);
};

}  // namespace etx::npu

#endif  // ETX_ETHOS_U_BLOB_H_
