/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETX_TESTS_CHECK_C_H_
#define ETX_TESTS_CHECK_C_H_

#include <etx/etx.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the process where `condition` is false, with etx.h's last error. */
#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, etx_last_error()); \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

#endif /* ETX_TESTS_CHECK_C_H_ */
