// SPDX-License-Identifier: BSD-3-Clause
// Programs, run.
#include "run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etx::fuzz::run_program(data, size, true);
  return 0;
}
