// SPDX-License-Identifier: BSD-3-Clause
/// The hook of a product: Arm's driver (ethos-u-core-driver, `ethosu_driver.h`), which the product
/// links and initializes. Compiled next to its public interface; tried on no hardware.
#include <ethosu_driver.h>

#include "ethos_u/hook.h"

namespace etx::npu {

Error prepare(etx_init_context*, const Blob&, void** state, const char**) {
  *state = nullptr;
  return Error::Ok;
}

Error invoke(void*, const Run& run, const char** reason) {
  uint64_t bases[kBlobRegions];
  for (uint32_t i = 0; i < kBlobRegions; ++i) {
    bases[i] = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(run.regions.base[i]));
  }
  ethosu_driver* driver = ethosu_reserve_driver();
  if (driver == nullptr) {
    *reason = "the driver has no NPU: call ethosu_init before the model";
    return Error::InvalidState;
  }
  const Bytes& commands = run.blob->commands;
  const int code = ethosu_invoke_v3(driver, commands.data, static_cast<int>(commands.size), bases,
                                    run.regions.size, static_cast<int>(kBlobRegions), nullptr);
  ethosu_release_driver(driver);
  if (code == 0) return Error::Ok;
  *reason = "the driver says that the NPU stopped with an error";
  return Error::InvalidState;
}

}  // namespace etx::npu
