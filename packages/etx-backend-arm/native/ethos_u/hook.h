// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ETHOS_U_HOOK_H_
#define ETX_ETHOS_U_HOOK_H_

#include <etx/abi.h>
#include <etx/error.h>

#include "ethos_u/blob.h"

namespace etx::npu {

constexpr uint32_t kWeights = 0, kScratch = 1, kFastScratch = 2, kBlobRegions = 3;

/// What region `n` of the commands is: `kWeights` is only read, the others are the same scratch.
struct Regions {
  uint8_t* base[kBlobRegions];
  size_t size[kBlobRegions];
};

/// One run of a blob, with its inputs in place.
struct Run {
  const Blob* blob;
  Regions regions;
  etx_context* context;
};

// A build links one definition of these two: npu/simulator.cpp, or ethos_u/driver.cpp.

/// Called once when a blob is loaded; `*state` goes to each invoke. On an error `*reason` says why,
/// as long as the method lives.
Error prepare(etx_init_context* context, const Blob& blob, void** state, const char** reason);

/// Runs the commands, and returns when they have ended.
Error invoke(void* state, const Run& run, const char** reason);

}  // namespace etx::npu

#endif  // ETX_ETHOS_U_HOOK_H_
