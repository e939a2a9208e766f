# SPDX-License-Identifier: BSD-3-Clause
"""The commands of this package: a module each, whose `register` adds it to `etx`."""
