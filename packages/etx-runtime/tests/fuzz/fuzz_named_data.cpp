// SPDX-License-Identifier: BSD-3-Clause
// The named data of programs, and delegates that look it up.
#include "run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etx::fuzz::run_named_data(data, size);
  return 0;
}
