// SPDX-License-Identifier: BSD-3-Clause
#include "method.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <etx/platform.h>

#include "../hosted/describe.h"
#include "../hosted/strided_copy.h"
#include "callbacks.h"
#include "gil.h"
#include "interrupt.h"
#include "recorder.h"

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

/// Keeps the durations of instructions; names are put together later, which takes time.
class Durations final : public EventTracer {
 public:
  explicit Durations(size_t instructions) { events_.reserve(4 * instructions); }
  ~Durations() = default;
  void load(const char*, Error, uint64_t, uint64_t) override {}
  void begin_execution(const char*) override {}
  void end_execution(uint64_t, uint64_t) override {}
  void delegate_event(const DelegateEvent&) override {}
  void allocation(uint32_t, uint64_t) override {}
  void output(uint32_t, const etx_value&) override {}
  void event(const TraceEvent& event) override { events_.push_back(event); }

  std::vector<Event> take() const {
    std::vector<Event> found;
    for (const TraceEvent& event : events_) {
      found.emplace_back(event.instruction, name_of(event), event.end - event.start);
    }
    return found;
  }

 private:
  static std::string name_of(const TraceEvent& event) {
    static constexpr const char* kNames[] = {"kernel", "delegate", "move", "jump", "free"};
    if (event.name == nullptr) return kNames[static_cast<size_t>(event.kind)];
    const bool has_overload = event.overload != nullptr && *event.overload != '\0';
    return clean(has_overload ? std::string(event.name) + "." + event.overload : event.name);
  }
  std::vector<TraceEvent> events_;
};

nb::object as_tuple(nb::handle inputs) {
  PyObject* items = PySequence_Tuple(inputs.ptr());
  if (items != nullptr) return nb::steal(items);
  PyErr_Clear();
  raise("InputError", Error::InvalidArgument, "the inputs must be a list or tuple");
}

StoredBackendOptions store(const std::vector<Option>& options) {
  StoredBackendOptions stored;
  for (const Option& option : options) {
    const char* key = std::get<1>(option).c_str();
    const auto add = [&](const BackendOption& each) {
      return stored.add(std::get<0>(option).c_str(), each);
    };
    const bool is_kept = std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            return add({key, value.c_str()});
          } else {
            return add({key, value});
          }
        },
        std::get<2>(option));
    if (!is_kept) {
      raise("LoadError", Error::InvalidArgument, "backend_options: more than 8 backends");
    }
  }
  return stored;
}

nb::object as_tuple_of_sizes(Span<const int32_t> shape) {
  nb::list sizes;
  for (const int32_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

}  // namespace

/// Refuses a second user while one executes.
struct PyMethod::Use {
  explicit Use(PyMethod& method_) : method(method_) {
    if (method.is_busy_->exchange(true, std::memory_order_acquire)) {
      raise("ExecutionError", Error::InvalidState,
            "the method, or one that shares its state, is executing already, in another thread or "
            "around this call; load it once a thread");
    }
  }
  ~Use() { method.is_busy_->store(false, std::memory_order_release); }
  PyMethod& method;
};

PyMethod::PyMethod(const PyProgram& program, const std::string& name,
                   std::vector<std::string> inputs, nb::object origin, nb::object check,
                   const std::vector<PyMethod*>& sharing, const std::vector<Option>& options,
                   PyRecorder* recorder)
    : origin_(std::move(origin)), check_(std::move(check)) {
  load_numpy();
  ErrorText error;
  const StoredBackendOptions stored = store(options);
  const LoadBackendOptionsMap map = stored.map();
  const CallScope scope(nb::handle(), nullptr);
  {
    LoadScope loading;
    std::vector<std::unique_ptr<Use>> uses;
    std::vector<LoadedMethod*> methods;
    for (PyMethod* other : sharing) {
      const bool is_new = std::none_of(uses.begin(), uses.end(), [other](const auto& use) {
        return use->method.is_busy_ == other->is_busy_;
      });
      if (is_new) uses.push_back(std::make_unique<Use>(*other));
      methods.push_back(&other->loaded());
    }
    std::optional<PyRecorder::Use> recording;
    if (recorder != nullptr) recording.emplace(*recorder);
    loaded_->method = LoadedMethod::load(program.loaded, name, &error, methods, &map,
                                         recorder == nullptr ? nullptr : &recorder->dump());
    if (loaded_->method != nullptr && loaded_->method->shares_state()) {
      for (PyMethod* other : sharing) {
        if (other->loaded().shares_state()) is_busy_ = other->is_busy_;
      }
    }
    callbacks_ = loading.callbacks();
    handles_ = loading.take_handles();
  }
  if (loaded_->method == nullptr) throw failure("LoadError", std::move(error));
  loaded_->method->set_input_names(std::move(inputs));
  const auto release = [](void* kept) noexcept {
    delete static_cast<std::shared_ptr<Loaded>*>(kept);
  };
  memory_ = nb::capsule(new std::shared_ptr<Loaded>(loaded_), release);
}

LoadedMethod& PyMethod::loaded() const {
  if (loaded_ == nullptr) {
    raise("ExecutionError", Error::InvalidState, "the method is gone");
  }
  return *loaded_->method;
}

int PyMethod::traverse(visitproc visit, void* arg) const {
  Py_VISIT(origin_.ptr());
  Py_VISIT(check_.ptr());
  for (const nb::object& callback : callbacks_) Py_VISIT(callback.ptr());
  for (const nb::object& handle : handles_) Py_VISIT(handle.ptr());
  return 0;
}

void PyMethod::clear() {
  unload();
  origin_.reset();
  check_.reset();
  callbacks_.clear();
}

/// Backends in Python run while it goes on, and may come back to this object.
void PyMethod::unload() {
  const std::vector<nb::object> handles = std::move(handles_);
  const std::shared_ptr<Loaded> loaded = std::move(loaded_);
  const nb::object memory = std::move(memory_);
  if (loaded != nullptr && loaded->method != nullptr) loaded->method->unload();
}

/// Adds where the instruction comes from, and the Python exception behind it.
Raised PyMethod::failure(const char* kind, ErrorText text) const {
  const nb::object cause = take_python_exception();
  const auto origin = [this](int32_t instruction) -> std::string {
    if (instruction < 0 || !origin_.is_valid() || origin_.is_none()) return "";
    const nb::object found = origin_(instruction);
    return nb::cast<std::string>(nb::str(found));
  };
  for (const auto& [name, instruction] : text.missing) {
    const std::string from = origin(instruction);
    if (!from.empty()) text.message += "; " + name + " is from " + from;
  }
  const std::string from = text.missing.empty() ? origin(text.instruction) : "";
  if (!from.empty()) text.message += " (from " + from + ")";
  Raised raised(kind, std::move(text));
  raised.cause = cause;
  if (raised.cause.is_valid()) {
    raised.text.message += ": " + describe_exception(raised.cause);
  }
  return raised;
}

void PyMethod::execute_released() {
  ErrorText error;
  bool ok;
  Interruptible interruptible(loaded().method());
  {
    const GilReleased released;
    ok = loaded().execute(&error);
  }
  interruptible.finish();
  if (!ok) throw failure("ExecutionError", std::move(error));
}

void PyMethod::check_inputs() {
  if (!check_.is_valid() || check_.is_none()) return;
  const Method& method = loaded().method();
  nb::list given;
  for (size_t i = 0; i < method.inputs_size(); ++i) {
    const EValue& value = method.get_input(i);
    if (value.is_tensor()) {
      given.append(as_tuple_of_sizes(value.to_tensor().sizes()));
    } else {
      given.append(value.is_scalar() ? to_python(value) : nb::object(nb::none()));
    }
  }
  check_(given);
}

/// The inputs, with copies of those in the method's own memory, such as borrowed outputs: setting
/// another input, or the execution, may write over them.
std::vector<PyObject*> PyMethod::copy_own(PyObject* const* inputs, size_t count, Keep* keep) {
  std::vector<PyObject*> all(inputs, inputs + count);
  for (PyObject*& input : all) {
    ArrayView view;
    if (PyLong_Check(input) || PyFloat_Check(input) || view_array(input, &view, keep) != nullptr) {
      continue;
    }
    if (!loaded().owns(view.data, 1)) continue;
    const nb::object bits = to_bits(input);
    if (bits.is_valid()) keep->objects.push_back(from_bits(bits, to_string(view.type)));
    if (bits.is_valid() && keep->objects.back().is_valid()) input = keep->objects.back().ptr();
  }
  return all;
}

/// A shape that does not fit at all is refused with the constraint that it breaks, if there is one.
void PyMethod::set_inputs(PyObject* const* inputs, size_t count, Keep* keep) {
  try {
    for (size_t i = 0; i < count; ++i) set_input(loaded(), i, inputs[i], keep);
  } catch (const Raised& raised) {
    if (raised.text.error != Error::NotSupported || !check_.is_valid() || check_.is_none()) throw;
    nb::list given;
    for (size_t i = 0; i < count; ++i) {
      ArrayView view;
      const bool is_array = view_array(inputs[i], &view, keep) == nullptr;
      given.append(is_array ? as_tuple_of_sizes(view.shape()) : nb::object(nb::none()));
    }
    check_(given);
    throw;
  }
}

/// `keep` gets what the inputs need for as long as the method may execute on them.
nb::object PyMethod::run_unguarded(PyObject* const* inputs, size_t count, Style style, Keep* keep) {
  Method& method = loaded().method();
  if (count != method.inputs_size()) {
    raise("InputError", Error::InvalidArgument,
          std::string(meta().name()) + " takes " + counted(method.inputs_size(), "input") +
              ", got " + std::to_string(count));
  }
  if (has_lent_) {
    set_inputs(copy_own(inputs, count, keep).data(), count, keep);
  } else {
    set_inputs(inputs, count, keep);
  }
  check_inputs();
  has_lent_ = has_lent_ || style.borrow || !callbacks_.empty();
  const CallScope scope(memory_, &loaded());
  execute_released();
  const size_t num_outputs = method.outputs_size();
  const nb::handle owner = style.borrow ? nb::handle(memory_) : nb::handle();
  if (!style.as_list && num_outputs == 1) {
    return to_python(method.get_output(0), &loaded(), owner);
  }
  const auto length = static_cast<Py_ssize_t>(num_outputs);
  nb::object outputs = nb::steal(style.as_list ? PyList_New(length) : PyTuple_New(length));
  if (!outputs.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < num_outputs; ++i) {
    PyObject* value = to_python(method.get_output(i), &loaded(), owner).release().ptr();
    const auto index = static_cast<Py_ssize_t>(i);
    if (style.as_list) {
      PyList_SetItem(outputs.ptr(), index, value);
    } else {
      PyTuple_SetItem(outputs.ptr(), index, value);
    }
  }
  return outputs;
}

nb::object PyMethod::run(PyObject* const* inputs, size_t count, Style style) {
  const Use use(*this);
  Keep keep;
  return run_unguarded(inputs, count, style, &keep);
}

/// The inputs of a list, those in memory of the method's own as copies.
std::vector<PyObject*> PyMethod::list_inputs(nb::handle inputs, Keep* keep) {
  const nb::object items = as_tuple(inputs);
  std::vector<PyObject*> pointers(static_cast<size_t>(PyTuple_Size(items.ptr())));
  for (size_t i = 0; i < pointers.size(); ++i) {
    pointers[i] = PyTuple_GetItem(items.ptr(), static_cast<Py_ssize_t>(i));
  }
  keep->objects.push_back(items);
  return has_lent_ ? copy_own(pointers.data(), pointers.size(), keep) : pointers;
}

nb::object PyMethod::run_list(nb::handle inputs, bool borrow, Keep* keep) {
  const std::vector<PyObject*> items = list_inputs(inputs, keep);
  return run_unguarded(items.data(), items.size(), {true, borrow}, keep);
}

nb::object PyMethod::execute(nb::handle inputs, bool borrow) {
  const Use use(*this);
  Keep keep;
  return run_list(inputs, borrow, &keep);
}

/// Lets a tracer watch for a while.
struct PyMethod::Tracing {
  Tracing(Method& method_, EventTracer* tracer) : method(method_) { method.set_tracer(tracer); }
  ~Tracing() { method.set_tracer(nullptr); }
  Method& method;
};

std::pair<nb::object, std::vector<Event>> PyMethod::profile(nb::handle inputs) {
  const Use use(*this);
  Durations durations(meta().num_instructions());
  const Tracing tracing(loaded().method(), &durations);
  Keep keep;
  nb::object outputs = run_list(inputs, false, &keep);
  return {outputs, durations.take()};
}

/// Executes again, each time on the inputs as they are given, since an execution may write to
/// where they lay.
template <typename Execute>
void PyMethod::repeat(const std::vector<PyObject*>& inputs, size_t iterations,
                      const Execute& execute) {
  ErrorText error;
  bool ok = true;
  const CallScope scope(memory_, &loaded());
  Interruptible interruptible(loaded().method());
  for (size_t i = 0; ok && i < iterations; ++i) {
    Keep keep;
    set_inputs(inputs.data(), inputs.size(), &keep);
    const GilReleased released;
    ok = execute(i, &error);
  }
  interruptible.finish();
  if (!ok) throw failure("ExecutionError", std::move(error));
}

std::vector<uint64_t> PyMethod::time_executions(nb::handle inputs, size_t iterations) {
  const Use use(*this);
  Keep keep;
  const std::vector<PyObject*> items = list_inputs(inputs, &keep);
  run_unguarded(items.data(), items.size(), {true, false}, &keep);
  std::vector<uint64_t> times(iterations);
  repeat(items, iterations, [&](size_t i, ErrorText* error) {
    const uint64_t start = etx_pal_current_ticks();
    const bool ok = loaded().execute(error);
    times[i] = etx_pal_current_ticks() - start;
    return ok;
  });
  return times;
}

nb::object PyMethod::trace(nb::handle inputs, PyRecorder& recorder, size_t iterations) {
  const Use use(*this);
  const PyRecorder::Use recording(recorder);
  const Tracing tracing(loaded().method(), &recorder.dump());
  Keep keep;
  const std::vector<PyObject*> items = list_inputs(inputs, &keep);
  nb::object outputs = run_unguarded(items.data(), items.size(), {true, false}, &keep);
  repeat(items, iterations, [&](size_t, ErrorText* error) { return loaded().execute(error); });
  return outputs;
}

nb::object PyMethod::input_value(size_t index) {
  Method& method = loaded().method();
  if (index >= method.inputs_size() || loaded().is_tensor_input(index)) {
    raise("MetadataError", Error::InvalidArgument,
          "input " + std::to_string(index) + " is not a number or a string of the method");
  }
  return to_python(method.get_input(index));
}

void PyMethod::seed(uint64_t seed) {
  const Use use(*this);
  loaded().method().seed(seed);
}

void PyMethod::reset_state() {
  const Use use(*this);
  const Error error = loaded().reset_state();
  if (error != Error::Ok) raise("ExecutionError", error, "the initial values cannot be read");
}

bool PyMethod::has_attribute(const std::string& name) const { return loaded().has_state(name); }

nb::object PyMethod::get_attribute(const std::string& name) {
  const Use use(*this);
  if (!loaded().has_state(name) && loaded().state(name).ok()) {
    raise("ExecutionError", Error::InvalidState,
          "buffer '" + clean(name) +
              "' has no memory: the file leaves it to the caller; bind_state or set_state gives it "
              "some");
  }
  return copy_tensor(
      value_of(loaded().state(name), ("the method has no buffer '" + clean(name) + "'").c_str()));
}

/// Reads `value` as an array for the mutable buffer `name` and returns the buffer.
Tensor PyMethod::view_attribute(const std::string& name, nb::handle value, ArrayView* view,
                                Keep* keep) {
  const std::string label = "buffer '" + clean(name) + "'";
  const Tensor tensor = value_of(loaded().state(name), ("the method has no " + label).c_str());
  nb::object number;
  if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) {
    number = from_number(value, tensor.scalar_type());
    if (number.is_valid()) value = number;
  }
  const char* reason = view_array(value, view, keep);
  keep->objects.push_back(number);
  const std::string expected = describe_tensor(tensor.scalar_type(), tensor.sizes(), false);
  if (reason != nullptr) {
    raise("InputError", Error::InvalidArgument,
          label + ": expected an array " + expected + (*reason == '\0' ? "" : ": ") + reason);
  }
  if (view->type != tensor.scalar_type() || !equal(view->shape(), tensor.sizes())) {
    raise("InputError", Error::InvalidArgument,
          label + ": expected " + expected + ", got " + describe_tensor(view->type, view->shape()));
  }
  return tensor;
}

void PyMethod::set_attribute(const std::string& name, nb::handle value) {
  const Use use(*this);
  Keep keep;
  ArrayView view;
  const Tensor tensor = view_attribute(name, value, &view, &keep);
  if (!loaded().has_state(name)) check_bound(name, loaded().bind_state(name));
  if (tensor.numel() == 0) return;
  copy_strided(tensor.mutable_data_ptr(), tensor.strides().data(), view.data, view.strides,
               view.sizes, view.rank, tensor.element_size());
}

void PyMethod::bind_attribute(const std::string& name, nb::handle value) {
  const Use use(*this);
  Keep keep;
  ArrayView view;
  const Tensor tensor = view_attribute(name, value, &view, &keep);
  const size_t alignment = tensor.element_size() < 8 ? tensor.element_size() : 8;
  bool fits = view.is_writable && reinterpret_cast<uintptr_t>(view.data) % alignment == 0;
  for (size_t i = 0; i < view.rank; ++i) {
    fits &= view.sizes[i] == 1 || view.strides[i] == tensor.stride(static_cast<ssize_t>(i));
  }
  if (!fits) {
    raise("InputError", Error::InvalidArgument,
          "buffer '" + clean(name) + "': memory to bind must be writable, aligned and lie as the " +
              "file says (" + describe_tensor(view.type, view.shape()) + " without gaps)");
  }
  keep.objects.push_back(nb::borrow(value));
  check_bound(name, loaded().bind_state(name, const_cast<void*>(view.data),
                                        std::make_shared<Keep>(std::move(keep))));
}

void PyMethod::check_bound(const std::string& name, Error error) {
  if (error == Error::Ok) return;
  raise(error == Error::NotFound ? "MetadataError" : "InputError", error,
        "buffer '" + clean(name) +
            (error == Error::InvalidState
                 ? "' cannot be bound: the file plans its memory, which set_state writes to"
                 : "' cannot be bound"));
}

}  // namespace python
}  // namespace etx
