// SPDX-License-Identifier: BSD-3-Clause
#include <etx/platform.h>

#include <cstring>

#include "method_state.h"

namespace etx {
namespace {

/// The runtime's side of etx_context; lives for one execution or step.
struct ExecutionContext : etx_context {
  const std::atomic<bool>* cancelled;
  MemoryAllocator* temp;
  Parallel* threads;
  const char* reason;
  bool temp_used;
  /// Of traced executions.
  const MethodState* state;
};

void* allocate_temp(etx_context* self, size_t size, size_t alignment) {
  auto* context = static_cast<ExecutionContext*>(self);
  if (context->temp == nullptr) return nullptr;
  context->temp_used = true;
  return context->temp->allocate(size, alignment);
}

etx_status record(etx_context* self, etx_status status, const char* reason) {
  static_cast<ExecutionContext*>(self)->reason = reason;
  return status;
}

void run_parallel(etx_context* self, int64_t begin, int64_t end, int64_t grain,
                  void (*body)(void*, int64_t, int64_t), void* user) {
  static_cast<ExecutionContext*>(self)->threads->parallel_for(begin, end, grain, body, user);
}

bool was_cancelled(const etx_context* self) {
  return static_cast<const ExecutionContext*>(self)->cancelled->load(std::memory_order_relaxed);
}

ExecutionContext make_context(MethodState& state) {
  ExecutionContext context;
  context.struct_size = sizeof(etx_context);
  context.num_threads = state.parallel == nullptr ? 1 : state.parallel->num_threads();
  context.allocate_temp = allocate_temp;
  context.fail = record;
  context.parallel_for = state.parallel == nullptr ? nullptr : run_parallel;
  context.temp = state.memory->temp_allocator();
  context.threads = state.parallel;
  context.reason = nullptr;
  context.temp_used = false;
  context.kernel = nullptr;
  context.num_args = 0;
  context.is_cancelled = was_cancelled;
  context.is_loading = false;
  context.cancelled = &state.is_cancelled;
  context.random = &state.random;
  context.trace = nullptr;
  context.ticks = nullptr;
  context.state = &state;
  return context;
}

bool is_freed(const etx_value& value) {
  return value.tag == ETX_TAG_TENSOR && (value.payload.as_tensor->flags & kFreed) != 0;
}

bool has_memory(const etx_value* value, bool written) {
  if (value == nullptr || value->tag != ETX_TAG_TENSOR) return true;
  const TensorImpl& tensor = *value->payload.as_tensor;
  const unsigned bad = kFreed | (written ? ETX_TENSOR_CONSTANT : 0u);
  if ((tensor.flags & bad) != 0) return false;
  return tensor.data != nullptr || tensor.numel == 0;
}

bool has_memory(const etx_value& value, bool written) {
  if (value.tag != ETX_TAG_LIST_TENSOR && value.tag != ETX_TAG_LIST_OPTIONAL_TENSOR) {
    return has_memory(&value, written);
  }
  for (uint32_t i = 0; i < value.count; ++i) {
    if (!has_memory(value.payload.as_tensor_list[i], written)) return false;
  }
  return true;
}

etx_status no_memory(ExecutionContext& context) {
  return record(&context, static_cast<etx_status>(Error::InvalidState),
                "a tensor has no memory, was freed, or is constant and written to");
}

etx_status check_tensors(ExecutionContext& context, Span<etx_value* const> args,
                         const char* signature) {
  for (const etx_value* arg : args) {
    Parameter parameter = {'*', false, false};
    if (*signature != '\0') signature = read_parameter(signature, &parameter);
    if (!has_memory(*arg, parameter.written)) {
      return no_memory(context);
    }
  }
  return 0;
}

/// A number slot keeps its kind, also when the kernel fails, so that what was checked at load stays
/// true. False when the number is of a kind that does not convert; it is 0 then.
bool keep_kind(EValue& value, Tag kind) {
  const Tag tag = value.tag();
  if (tag == kind) return true;
  const bool is_int = tag == Tag::Int;
  const bool is_bool = tag == Tag::Bool;
  switch (kind) {
    case Tag::Double: value.set(is_int ? detail::to_double(value.to_int()) : 0.0); return is_int;
    case Tag::Int:
      value.set(is_bool ? static_cast<int64_t>(value.to_bool()) : int64_t{0});
      return is_bool;
    default: value.set(false); return false;
  }
}

etx_status run_scalar(ExecutionContext& context, const MethodState& state,
                      const Instruction& instruction, Span<etx_value* const> args) {
  const char* signature = state.kernels[instruction.target]->signature;
  etx_status status = check_tensors(context, args, signature);
  if (status == 0) status = instruction.run(&context, args.data());
  for (size_t i = 0; i < args.size() && *signature != '\0'; ++i) {
    Parameter parameter;
    signature = read_parameter(signature, &parameter);
    if (parameter.letter != 'v') continue;
    EValue& value = *static_cast<EValue*>(args[i]);
    const auto index = static_cast<size_t>(&value - state.values.data());
    if (!keep_kind(value, tag_of(value_at(*state.plan, index))) && status == 0) {
      status = record(&context, static_cast<etx_status>(Error::InvalidType),
                      "the result is of another kind of number than the program says");
    }
  }
  return status;
}

/// A result without memory takes that of the view's input, and with it how much of it there is. One
/// with planned memory keeps it: normally it is the input's, else the elements are copied there.
etx_status run_view(ExecutionContext& context, etx_kernel_fn run, etx_value* const* args) {
  const TensorImpl& self = *args[0]->payload.as_tensor;
  TensorImpl& out = *args[2]->payload.as_tensor;
  const bool is_planned = (out.flags & kUnbound) == 0;
  if (!has_memory(args[0], false) || self.dtype != out.dtype ||
      (is_planned && !has_memory(args[2], true))) {
    return record(&context, static_cast<etx_status>(Error::InvalidState),
                  "a view needs an input with memory and a result of its dtype");
  }
  if (is_planned) {
    void* const planned = out.data;
    const etx_status status = run(&context, args);
    const void* const seen = out.data;
    out.data = planned;
    const size_t size = Tensor(&out).nbytes();
    if (status == 0 && seen != planned && size != 0) std::memmove(planned, seen, size);
    return status;
  }
  out.capacity = self.capacity;
  const etx_status status = run(&context, args);
  const unsigned constant = self.flags & ETX_TENSOR_CONSTANT;
  out.flags = static_cast<uint8_t>((out.flags & ~ETX_TENSOR_CONSTANT) | constant);
  if (status != 0 || out.numel > out.capacity) out.data = nullptr;
  return status;
}

etx_status run_delegate(ExecutionContext& context, const Delegate& delegate,
                        Span<etx_value* const> args) {
  const etx_status status = check_tensors(context, args, "");
  if (status != 0) return status;
  return delegate.backend->execute(delegate.backend, delegate.handle, &context, args.data(),
                                   args.size());
}

/// A bool, a bool tensor all of whose elements are true, or an integer that is not 0: slots keep
/// their stored kind, and ExecuTorch's exporter stores results of comparisons as integers.
/// Errors: InvalidState without memory.
etx_status evaluate(ExecutionContext& context, const etx_value& value, bool* result) {
  if (value.tag == ETX_TAG_BOOL) {
    *result = value.payload.as_bool;
    return 0;
  }
  if (value.tag == ETX_TAG_INT) {
    *result = value.payload.as_int != 0;
    return 0;
  }
  if (!has_memory(&value, false)) {
    return no_memory(context);
  }
  const TensorImpl& tensor = *value.payload.as_tensor;
  const auto* bytes = static_cast<const uint8_t*>(tensor.data);
  *result = true;
  for (int64_t i = 0; i < tensor.numel; ++i) *result &= bytes[i] != 0;
  return 0;
}

/// Goes to `target`; backward jumps count the instructions of the loop.
etx_status jump(ExecutionContext& context, MethodState& state, uint32_t target) {
  if (target <= state.pc) {
    state.spent += state.pc - target + 1;
    if (state.spent > state.budget) {
      return record(&context, static_cast<etx_status>(Error::OutOfResources),
                    "the instruction budget is used up: the program loops without end");
    }
  }
  state.pc = target;
  return 0;
}

/// All but plain kernels; advances the program counter.
etx_status run_other(ExecutionContext& context, MethodState& state,
                     const Instruction& instruction) {
  etx_status status = 0;
  etx_value** const values = arguments(state, instruction);
  const Span<etx_value* const> args = {values, instruction.num_args};
  switch (instruction.kind) {
    case Instruction::Kind::Jump: return jump(context, state, instruction.target);
    case Instruction::Kind::JumpFalse: {
      bool condition = false;
      status = evaluate(context, *args[0], &condition);
      if (status != 0 || condition) break;
      return jump(context, state, instruction.target);
    }
    case Instruction::Kind::CheckedKernel:
      status = check_tensors(context, args, state.kernels[instruction.target]->signature);
      if (status == 0) status = instruction.run(&context, values);
      break;
    case Instruction::Kind::ScalarKernel:
      status = run_scalar(context, state, instruction, args);
      break;
    case Instruction::Kind::AnyKernel:
      context.kernel = state.kernels[instruction.target];
      context.num_args = instruction.num_args;
      status = check_tensors(context, args, "");
      if (status == 0) status = instruction.run(&context, values);
      break;
    case Instruction::Kind::View: status = run_view(context, instruction.run, values); break;
    case Instruction::Kind::Delegate:
      status = run_delegate(context, state.delegates[instruction.target], args);
      break;
    case Instruction::Kind::Move:
      if (is_freed(*args[0])) {
        return no_memory(context);
      }
      *args[1] = *args[0];
      break;
    case Instruction::Kind::Free: args[0]->payload.as_tensor->flags |= kFreed; break;
    default: status = instruction.run(&context, values); break;
  }
  if (status == 0) ++state.pc;
  return status;
}

bool is_cancelled(const MethodState& state) {
  return state.is_cancelled.load(std::memory_order_relaxed);
}

etx_status stop_cancelled(ExecutionContext& context) {
  return record(&context, static_cast<etx_status>(Error::Cancelled), "cancelled before it ran");
}

void leave(MethodState& state) {
  state.is_running = false;
  state.is_cancelled.store(false, std::memory_order_relaxed);
}

Error stop(MethodState& state, const ExecutionContext& context, etx_status status) {
  const Instruction& instruction = state.instructions[state.pc];
  Failure failure;
  failure.error = static_cast<Error>(status);
  failure.reason = context.reason;
  failure.instruction = static_cast<int32_t>(state.pc);
  if (instruction.kind <= Instruction::Kind::View) {
    const fbs::Operator& op = at(state.plan->operators(), instruction.target);
    failure.name = text(op.name());
    failure.overload = text(op.overload());
  } else if (instruction.kind == Instruction::Kind::Delegate) {
    failure.name = state.delegates[instruction.target].backend->name;
  }
  state.failure = failure;
  leave(state);
  return failure.error;
}

void begin(MethodState& state) {
  state.pc = 0;
  state.spent = 0;
  state.is_running = true;
  for (const Rebind& rebind : state.rebinds) restore(rebind);
}

/// After the last instruction. Errors: InvalidState when an output was freed.
Error end(MethodState& state) {
  leave(state);
  for (size_t i = 0; state.has_free && i < state.outputs.size(); ++i) {
    if (!is_freed(*state.outputs[i].slot)) continue;
    Failure failure;
    failure.error = Error::InvalidState;
    failure.reason = "the program freed this output";
    failure.index = static_cast<int32_t>(i);
    state.failure = failure;
    return failure.error;
  }
  return Error::Ok;
}

TraceEvent describe(const MethodState& state, uint32_t pc) {
  const Instruction& instruction = state.instructions[pc];
  TraceEvent event{};
  event.kind = TraceEvent::Kind::Kernel;
  event.instruction = pc;
  event.args = {arguments(state, instruction), instruction.num_args};
  switch (instruction.kind) {
    case Instruction::Kind::Delegate:
      event.kind = TraceEvent::Kind::Delegate;
      event.name = state.delegates[instruction.target].backend->name;
      break;
    case Instruction::Kind::Move: event.kind = TraceEvent::Kind::Move; break;
    case Instruction::Kind::Free: event.kind = TraceEvent::Kind::Free; break;
    case Instruction::Kind::Jump:
    case Instruction::Kind::JumpFalse: event.kind = TraceEvent::Kind::Jump; break;
    default: {
      const fbs::Operator& op = at(state.plan->operators(), instruction.target);
      event.name = text(op.name());
      event.overload = text(op.overload());
      event.signature = state.kernels[instruction.target]->signature;
    }
  }
  return event;
}

void trace_delegate(etx_context* self, const etx_delegate_event* event) {
  const MethodState& state = *static_cast<ExecutionContext*>(self)->state;
  state.tracer->delegate_event({0, state.pc, *event});
}

void* allocate_traced(etx_context* self, size_t size, size_t alignment) {
  const MethodState& state = *static_cast<ExecutionContext*>(self)->state;
  state.tracer->allocation(state.pc, size);
  return allocate_temp(self, size, alignment);
}

/// What a thread did of a loop.
struct Share {
  uint64_t items;
  uint64_t start;
  uint64_t end;
};

/// A traced `parallel_for`: each thread writes to its own share.
struct TracedLoop {
  static constexpr uint32_t kThreads = 64;
  Parallel* threads;
  Parallel::Body body;
  void* user;
  Share shares[kThreads];
};

void run_range(void* user, int64_t begin, int64_t end) {
  auto& loop = *static_cast<TracedLoop*>(user);
  const uint32_t thread = loop.threads->thread();
  const uint64_t start = etx_pal_current_ticks();
  loop.body(loop.user, begin, end);
  if (thread >= TracedLoop::kThreads) return;
  Share& share = loop.shares[thread];
  if (share.items == 0) share.start = start;
  share.items += static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  share.end = etx_pal_current_ticks();
}

/// Loops on one thread are not told: their time is that of the instruction.
void run_parallel_traced(etx_context* self, int64_t begin, int64_t end, int64_t grain,
                         void (*body)(void*, int64_t, int64_t), void* user) {
  const auto& context = *static_cast<const ExecutionContext*>(self);
  Parallel& threads = *context.threads;
  const bool is_alone = threads.thread() != 0 || threads.num_threads() == 1;
  const uint64_t items = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  if (is_alone || end <= begin || (grain > 0 && items <= static_cast<uint64_t>(grain))) {
    threads.parallel_for(begin, end, grain, body, user);
    return;
  }
  TracedLoop loop;
  loop.threads = &threads;
  loop.body = body;
  loop.user = user;
  for (Share& share : loop.shares) share.items = 0;
  threads.parallel_for(begin, end, grain, run_range, &loop);
  if (loop.shares[0].items == items) return;
  const MethodState& state = *context.state;
  for (uint32_t i = 0; i < TracedLoop::kThreads; ++i) {
    const Share& share = loop.shares[i];
    if (share.items == 0) continue;
    state.tracer->thread_event({0, state.pc, i, share.items, share.start, share.end});
  }
}

ExecutionContext make_traced_context(MethodState& state) {
  ExecutionContext context = make_context(state);
  if (state.parallel != nullptr) context.parallel_for = run_parallel_traced;
  context.allocate_temp = allocate_traced;
  context.trace = trace_delegate;
  context.ticks = etx_pal_current_ticks;
  return context;
}

etx_status run_one(ExecutionContext& context, MethodState& state) {
  const etx_status status = run_other(context, state, state.instructions[state.pc]);
  if (context.temp_used) {
    context.temp->reset();
    context.temp_used = false;
  }
  return status;
}

/// Returns when the instruction ended, or `start` when it was cancelled before it ran.
uint64_t trace_one(ExecutionContext& context, MethodState& state, uint64_t start,
                   etx_status* status) {
  if (is_cancelled(state)) {
    *status = stop_cancelled(context);
    return start;
  }
  TraceEvent event = describe(state, state.pc);
  *status = run_one(context, state);
  event.error = static_cast<Error>(*status);
  event.start = start;
  event.end = etx_pal_current_ticks();
  state.tracer->event(event);
  return event.end;
}

void trace_end(MethodState& state, bool is_whole) {
  state.tracer->end_execution(state.trace_start, etx_pal_current_ticks());
  for (uint32_t i = 0; is_whole && i < state.outputs.size(); ++i) {
    state.tracer->output(i, *state.outputs[i].slot);
  }
}

/// All of an execution, or its next instruction.
Error run_traced(MethodState& state, bool step) {
  ExecutionContext context = make_traced_context(state);
  if (state.pc == 0) state.tracer->begin_execution(text(state.plan->name()));
  uint64_t now = etx_pal_current_ticks();
  if (state.pc == 0) state.trace_start = now;
  const size_t count = state.instructions.size();
  etx_status status = 0;
  do {
    if (state.pc < count) now = trace_one(context, state, now, &status);
  } while (!step && status == 0 && state.pc < count);
  const bool is_whole = status == 0 && state.pc >= count;
  if (is_whole || status != 0) trace_end(state, is_whole);
  if (status != 0) return stop(state, context, status);
  return step ? Error::Ok : end(state);
}

}  // namespace

void Method::set_tracer(EventTracer* tracer) {
  state_->tracer = tracer;
  state_->run_traced = tracer == nullptr ? nullptr : run_traced;
}

const char* read_parameter(const char* signature, Parameter* parameter) {
  *parameter = {*signature++, false, false};
  for (; *signature == '!' || *signature == '?'; ++signature) {
    *(*signature == '!' ? &parameter->written : &parameter->optional) = true;
  }
  if (parameter->letter == 'L' && *signature == '\0') parameter->written = true;
  return signature;
}

void update_strides(TensorImpl& tensor) { Tensor::set_strides(tensor); }

etx_status check_at_load(MethodState& state, const Instruction& instruction, const char** reason) {
  ExecutionContext context = make_context(state);
  context.is_loading = true;
  context.temp = nullptr;
  const etx_status status = instruction.run(&context, arguments(state, instruction));
  *reason = context.reason;
  return status;
}

void restore(const Rebind& rebind) {
  TensorImpl& tensor = *rebind.tensor;
  tensor.flags = static_cast<uint8_t>(tensor.flags & ~kFreed);
  if ((tensor.flags & kUnbound) == 0) return;
  tensor.flags = kUnbound | (rebind.is_constant ? ETX_TENSOR_CONSTANT : 0);
  tensor.data = rebind.data;
  tensor.capacity = rebind.capacity;
  if (tensor.numel <= tensor.capacity) return;
  if (is_dynamic(*rebind.stored)) {
    tensor.numel = numel_of(*rebind.stored);
    for (uint32_t i = 0; i < tensor.rank; ++i) tensor.sizes[i] = rebind.stored->sizes()->Get(i);
    update_strides(tensor);
  }
  if (tensor.numel > tensor.capacity) tensor.data = nullptr;
}

Error Method::execute() {
  MethodState& state = *state_;
  begin(state);
  if (state.run_traced != nullptr) return state.run_traced(state, false);
  ExecutionContext context = make_context(state);
  const Instruction* const code = state.instructions.data();
  const auto count = static_cast<uint32_t>(state.instructions.size());
  uint32_t pc = 0;
  while (pc < count) {
    const Instruction& instruction = code[pc];
    etx_status status;
    if (is_cancelled(state)) {
      state.pc = pc;
      return stop(state, context, stop_cancelled(context));
    }
    if (instruction.kind == Instruction::Kind::Kernel) {
      status = instruction.run(&context, arguments(state, instruction));
      if (status != 0) state.pc = pc;
      ++pc;
    } else {
      state.pc = pc;
      status = run_other(context, state, instruction);
      pc = state.pc;
    }
    if (context.temp_used) {
      context.temp->reset();
      context.temp_used = false;
    }
    if (status != 0) return stop(state, context, status);
  }
  return end(state);
}

Error Method::step() {
  MethodState& state = *state_;
  if (!state.is_running) begin(state);
  if (state.pc >= state.instructions.size()) return Error::EndOfMethod;
  if (state.run_traced != nullptr) return state.run_traced(state, true);
  ExecutionContext context = make_context(state);
  const etx_status status = is_cancelled(state) ? stop_cancelled(context) : run_one(context, state);
  return status == 0 ? Error::Ok : stop(state, context, status);
}

Error Method::reset_execution() {
  if (state_->is_running && state_->pc < state_->instructions.size()) return Error::InvalidState;
  leave(*state_);
  return Error::Ok;
}

}  // namespace etx
