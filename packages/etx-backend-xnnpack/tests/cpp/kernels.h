// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_TESTS_KERNELS_H_
#define ETX_XNNPACK_TESTS_KERNELS_H_

/// One line each: what it is for, rows and columns of its tile, where it lies.
void print_kernels();

#endif  // ETX_XNNPACK_TESTS_KERNELS_H_
