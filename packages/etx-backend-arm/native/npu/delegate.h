// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NPU_DELEGATE_H_
#define ETX_NPU_DELEGATE_H_

#include <etx/abi.h>
#include <etx/error.h>

#include "blob.h"
#include "machine.h"

namespace etx::npu {

/// A loaded blob with its memory, all of which the method's allocator has given.
class Delegate {
 public:
  /// Checks the blob and every command. Errors: InvalidProgram, NotSupported, NotFound,
  /// MemoryAllocationFailed.
  Error load(etx_init_context* context, const void* blob, size_t size);
  /// Copies inputs in, runs, copies outputs out. Errors: InvalidArgument, InvalidProgram,
  /// Cancelled.
  Error execute(etx_context* context, etx_value* const* args, size_t num_args);

  /// Says why the last call has failed; stays until the next one.
  const char* reason() const { return reason_; }

 private:
  Error load_weights(etx_init_context* context);
  Error allocate(etx_init_context* context, const Needs& needs);
  Error refuse(Error error, const char* before, Fault fault, size_t offset);
  Error refuse(Error error, const char* text);

  Blob blob_;
  Stream stream_;
  Memory memory_;
  Workspace workspace_;
  size_t known_bytes_ = 0;
  char reason_[160] = "";
};

}  // namespace etx::npu

#endif  // ETX_NPU_DELEGATE_H_
