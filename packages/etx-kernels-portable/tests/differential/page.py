# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/differential.md."""

from __future__ import annotations

from differential.calls import OUTCOMES
from differential.known import ROWS
from differential.run import Summary, drawn_kernels

HEAD = """# Kernels against eager

Each kernel of `etx-kernels-portable` is called with random arguments, legal and odd: 0-dim and
empty tensors, ranks to 9, permuted dim orders, mixed dtypes, negative and absurd parameters, NaN,
infinities, subnormals, the smallest and largest integers. What it computes is compared with what
PyTorch computes eagerly: to the bit where eager's loops are exact, else within steps of the dtype
or as near to the result in float64 as eager's is.

`python3 noxfile.py -s differential` makes 50,000 calls and writes this page; CI makes 2,000 by
the seed that `--sweep-seed` has unless it is given. A difference without a row of the last
table fails, and so does a row that is no longer needed: that 50,000 calls do not come upon, or, of
rare ones, whose example is right now. `-- --only 7/1234` makes one call again, by seed and index.
"""


def page(summary: Summary) -> str:
    """Return the text of the page."""
    kernels, left_out = drawn_kernels()
    lines = [HEAD, f"## {summary.total:,} calls of {kernels} kernels, seed {summary.seed}", ""]
    lines += ["| outcome | calls |", "| --- | --- |"]
    known = sum(summary.rows.values())
    for name, text in OUTCOMES.items():
        if name in ("equal", "refused", "lenient", "unlisted"):
            lines.append(f"| {text} | {summary.outcomes[name]:,} |")
    lines.append(f"| they differ for a reason below | {known:,} |")
    lines.append(f"| they differ | {len(summary.unexplained):,} |")
    lines += ["", "## Not called", "", "| kernel | reason |", "| --- | --- |"]
    lines += [f"| `{name}` | {reason} |" for name, reason in left_out.items()]
    lines += ["", "## Why they differ", "", "| row | calls | reason |", "| --- | --- | --- |"]
    for row in ROWS:
        lines.append(f"| {row.name} | {summary.rows[row.name]:,} | {row.reason} |")
    return "\n".join(lines) + "\n"
