# SPDX-License-Identifier: BSD-3-Clause
"""Dataclasses generated from the schema."""
