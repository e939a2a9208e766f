// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_BLOB_H_
#define ETX_NPU_BLOB_H_

#include <cstddef>
#include <cstdint>

#include "fault.h"

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

/// The register commands behind the driver's header, and the NPU that they are for.
struct Stream {
  const uint8_t* data = nullptr;
  size_t words = 0;
  uint32_t macs = 0;

  /// Refuses what is for another NPU than an Ethos-U55 or U65 of one core.
  static Fault read(const Bytes& commands, Stream* stream);
};

}  // namespace etx::npu

#endif  // ETX_NPU_BLOB_H_
