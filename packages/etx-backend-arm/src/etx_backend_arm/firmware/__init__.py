# SPDX-License-Identifier: BSD-3-Clause
"""`etx firmware`: a CMake project for a microcontroller from a model."""
