// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_TESTS_CPP_CHECK_H_
#define ETX_TESTS_CPP_CHECK_H_

#include <cstdio>
#include <cstdlib>

/// Ends the test with a message unless `condition`.
#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

#endif  // ETX_TESTS_CPP_CHECK_H_
