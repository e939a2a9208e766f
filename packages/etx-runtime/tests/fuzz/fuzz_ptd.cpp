// SPDX-License-Identifier: BSD-3-Clause
// `.ptd` files, alone and as the weights of a program.
#include "run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etx::fuzz::run_ptd(data, size);
  return 0;
}
