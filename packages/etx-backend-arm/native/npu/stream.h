// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_STREAM_H_
#define ETX_NPU_STREAM_H_

#include "ethos_u/blob.h"

namespace etx::npu {

/// The register commands behind the driver's header, and the NPU that they are for.
struct Stream {
  const uint8_t* data = nullptr;
  size_t words = 0;
  uint32_t macs = 0;

  /// Refuses what is for another NPU than an Ethos-U55 or U65.
  static Fault read(const Bytes& commands, Stream* stream);
};

}  // namespace etx::npu

#endif  // ETX_NPU_STREAM_H_
