// SPDX-License-Identifier: BSD-3-Clause
// Programs up to their methods' load, with their delegates' blobs.
#include "run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etx::fuzz::run_program(data, size, false);
  return 0;
}
