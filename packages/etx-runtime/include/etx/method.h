// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_METHOD_H_
#define ETX_METHOD_H_

#include <cstddef>
#include <cstdint>

#include <etx/arena.h>
#include <etx/failure.h>
#include <etx/loader.h>
#include <etx/method_meta.h>
#include <etx/parallel.h>
#include <etx/result.h>
#include <etx/tracer.h>
#include <etx/value.h>

namespace etx {

class Program;
struct MethodState;

/// A method with its memory: set the inputs, execute, read the outputs, again and again.
///
/// Made by `Program::load_method`. Used by one thread at a time; only `cancel` may be called by
/// others meanwhile. Mutable buffers keep their values between executions.
class Method {
 public:
  Method(Method&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  Method& operator=(Method&&) = delete;
  /// Destroys the delegates; the memory is the caller's.
  ~Method();

  MethodMeta method_meta() const;
  size_t inputs_size() const;
  size_t outputs_size() const;

  /// Sets input `index`. A planned tensor's bytes are copied; of another the pointer is kept: it
  /// must be aligned to the elements, and the bytes must stay valid until the execution is over.
  /// Numbers that the program reads are set; those it does not, and strings, must have the value
  /// that they had at export. Errors: InvalidArgument (index, kind, dtype, layout or value),
  /// NotSupported (shape).
  Error set_input(const EValue& value, size_t index);

  /// Gives tensor input `index` a shape, all but the bytes: those of a planned one are then written
  /// through `get_input`. Errors: as set_input.
  Error resize_input(size_t index, ScalarType scalar_type, Span<const int32_t> sizes);

  /// True when input `index` is a number that the program reads, which may have any value.
  bool is_input_free(size_t index) const;

  /// True when input `index` is a tensor in planned memory, which set_input copies to.
  bool is_input_planned(size_t index) const;

  /// Binds the bytes of an output that is not planned, until set again. `size` bytes must do for
  /// the upper bounds, and the address must be aligned to the elements.
  /// Errors: InvalidArgument (index, no tensor, too small), InvalidState (the output is planned).
  Error set_output_data_ptr(void* data, size_t size, size_t index);

  /// `index` must be below inputs_size() or outputs_size(). Outputs are valid until the next
  /// execution.
  const EValue& get_input(size_t index) const;
  const EValue& get_output(size_t index) const;

  /// Runs all instructions. Errors: those of kernels and backends, OutOfResources (see
  /// set_instruction_budget), Cancelled; last_failure() says more.
  Error execute();

  /// Ends the running execution with Error::Cancelled before its next instruction, or within one
  /// whose kernel asks `Context::is_cancelled`. Where none is running it ends the next one, so that
  /// a request is never lost; whatever ends an execution takes the request back. The method can be
  /// executed again, its mutable buffers as far as the ended execution came. From any thread, and
  /// from signal and interrupt handlers; the Method must not be moved or destroyed meanwhile.
  void cancel();
  /// Takes back a request that came after the end of an execution. On the method's own thread.
  void clear_cancel();

  /// Runs one instruction. Errors: EndOfMethod after the last one, then reset_execution().
  Error step();
  /// Makes the next `step` begin again. Errors: InvalidState unless the method was at its end.
  Error reset_execution();

  /// Puts the initial values back into planned memory: zeros where the file stores none.
  /// With `zero` false the bytes of buffers without stored values stay.
  Error reset_state(bool zero = true);

  /// A mutable buffer by its fully qualified name; one whose memory the file leaves to the caller
  /// has no data until it is bound. Errors: NotFound.
  Result<Tensor> get_attribute(const char* name) const;

  /// Binds the bytes of a mutable buffer that the file leaves to the caller, until set again; they
  /// hold its value before and after an execution. `size` bytes must do for its sizes, and the
  /// address must be aligned to its elements.
  /// Errors: NotFound, InvalidState (the buffer is planned), InvalidArgument (too small).
  Error set_attribute_data_ptr(void* data, size_t size, const char* name);

  /// The most recent failure; its error is Ok when there was none.
  const Failure& last_failure() const;
  /// The values of instruction `index`: inputs, then outputs; empty when there is none. With
  /// pointers of 32 bits, until those of another are asked for or the method executes.
  Span<etx_value* const> instruction_args(size_t index) const;

  /// The kernel of instruction `index`; null where it is another kind of instruction, or none.
  etx_kernel_fn instruction_kernel(size_t index) const;

  /// Instructions after which an execution that jumps backwards is ended; 10 million unless set.
  void set_instruction_budget(uint64_t instructions);
  /// Begins the method's random numbers, in which a kernel's draws follow one another, with those
  /// of `seed`; loading does so with 0, and reset_state does not. Equal seeds give equal numbers,
  /// on any machine and number of threads, also in another method.
  void seed(uint64_t seed);
  /// Threads for kernels, or null for none; must outlive the method.
  void set_parallel(Parallel* parallel);
  /// Watches the following executions, or null.
  void set_tracer(EventTracer* tracer);

 private:
  friend class MethodLoader;
  explicit Method(MethodState* state) : state_(state) {}

  MethodState* state_;
};

}  // namespace etx

#endif  // ETX_METHOD_H_
