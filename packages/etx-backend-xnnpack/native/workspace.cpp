// SPDX-License-Identifier: BSD-3-Clause
#include "workspace.h"

#include <cstdlib>
#include <new>

namespace etx::xnnpack {
namespace {

/// Guards the list of all workspaces.
Mutex list_mutex;
Workspace* first = nullptr;
/// That of the delegate that this thread made last; compared, never followed.
thread_local const Workspace* latest = nullptr;

Workspace* find(Sharing sharing, const void* method) {
  if (sharing == Sharing::Delegate) return nullptr;
  for (Workspace* each = first; each != nullptr; each = each->next) {
    const bool fits = sharing == Sharing::Process ? each->owner == &first
                                                  : each == latest && each->owner == method;
    if (fits) return each;
  }
  return nullptr;
}

}  // namespace

Error acquire_workspace(Sharing sharing, const void* method, Workspace** workspace) {
  const Lock lock(list_mutex);
  Workspace* found = find(sharing, method);
  if (found == nullptr) {
    void* memory = std::malloc(sizeof(Workspace));
    if (memory == nullptr) return fail(Error::MemoryAllocationFailed, "no memory");
    found = ::new (memory) Workspace();
    const xnn_status status = xnn_create_workspace(&found->memory);
    if (status != xnn_status_success) {
      found->~Workspace();
      std::free(found);
      return fail(Error::Internal, "XNNPACK makes no workspace: status %d", status);
    }
    found->owner = sharing == Sharing::Process ? &first : method;
    found->next = first;
    first = found;
  }
  ++found->users;
  latest = found;
  *workspace = found;
  return Error::Ok;
}

void release_workspace(Workspace* workspace) {
  const Lock lock(list_mutex);
  if (--workspace->users != 0) return;
  for (Workspace** each = &first; *each != nullptr; each = &(*each)->next) {
    if (*each != workspace) continue;
    *each = workspace->next;
    break;
  }
  xnn_release_workspace(workspace->memory);
  workspace->~Workspace();
  std::free(workspace);
}

}  // namespace etx::xnnpack
