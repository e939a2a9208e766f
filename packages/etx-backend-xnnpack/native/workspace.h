// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_XNNPACK_WORKSPACE_H_
#define ETX_XNNPACK_WORKSPACE_H_

#include <xnnpack.h>

#include "failure.h"
#include "mutex.h"

namespace etx::xnnpack {

/// Memory for what lies between the nodes, shared by delegates that do not run at the same time.
/// `mutex` is held while one of them is made, runs or ends.
struct Workspace {
  xnn_workspace_t memory = nullptr;
  Mutex mutex;
  size_t users = 0;
  Workspace* next = nullptr;
  const void* owner = nullptr;
};

/// Who shares a workspace.
enum class Sharing { Delegate, Method, Process };

/// The workspace of a delegate of the method named at `method`; `Method` shares it with the
/// delegates of the same name that this thread made just before.
/// Errors: MemoryAllocationFailed, Internal.
Error acquire_workspace(Sharing sharing, const void* method, Workspace** workspace);
void release_workspace(Workspace* workspace);

}  // namespace etx::xnnpack

#endif  // ETX_XNNPACK_WORKSPACE_H_
