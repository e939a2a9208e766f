// SPDX-License-Identifier: BSD-3-Clause
#include "initialize.h"

#include <pthread.h>

#include "kernels/narrow.h"
#include "kernels/special.h"
#include "packing/goi.h"

static void replace_all(void) {
  etx_xnnpack_pack_by_blocks();
  etx_xnnpack_use_special();
  etx_xnnpack_use_narrow();
}

enum xnn_status etx_xnnpack_initialize(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const enum xnn_status status = xnn_initialize(NULL);
  if (status == xnn_status_success) pthread_once(&once, replace_all);
  return status;
}
