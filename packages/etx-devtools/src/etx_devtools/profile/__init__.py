# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a program goes: by operator, module, source line and instruction."""

from etx_devtools.profile.chrome import chrome_trace
from etx_devtools.profile.profile import Part, Profile, Step, profile_of
from etx_devtools.profile.views import VIEWS, Line, lines

__all__ = ["VIEWS", "Line", "Part", "Profile", "Step", "chrome_trace", "lines", "profile_of"]
