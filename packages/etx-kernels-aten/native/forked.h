// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_ATEN_FORKED_H_
#define ETX_ATEN_FORKED_H_

namespace etx::aten {

/// Looks out for forks from now on; the first call counts.
void watch_forks();

/// In a child process, on the thread that forked: has torch compute on this thread only. The pool
/// of OpenMP that the thread had is not in the child, and its next use would wait for ever.
void leave_pool_of_parent();

}  // namespace etx::aten

#endif  // ETX_ATEN_FORKED_H_
