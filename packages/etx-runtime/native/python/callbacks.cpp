// SPDX-License-Identifier: BSD-3-Clause
#include "callbacks.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "../hosted/describe.h"
#include "../hosted/strided_copy.h"
#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace etx {
namespace python {
namespace {

thread_local CallScope* current_scope = nullptr;
thread_local LoadScope* current_load = nullptr;
thread_local PyObject* pending = nullptr;

constexpr auto kFailed = static_cast<etx_status>(Error::Internal);

/// Keeps the exception that is being handled for `take_python_exception`.
void keep_exception() {
  nb::object exception;
  try {
    throw;
  } catch (nb::python_error& error) {
    exception = nb::borrow(error.value());
  } catch (const Raised& raised) {
    set_python_error(raised);
    exception = nb::borrow(nb::python_error().value());
  } catch (const std::exception& error) {
    exception = nb::handle(PyExc_RuntimeError)(error.what());
  }
  PyObject* old = pending;
  pending = exception.release().ptr();
  Py_XDECREF(old);
}

[[noreturn]] void fail(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

/// True when the method, or what it binds, owns the memory of a tensor; else it is the caller's.
bool is_lent(const Tensor& tensor) {
  const CallScope* scope = current_scope;
  return scope != nullptr && scope->owner.is_valid() &&
         !scope->method->is_callers(tensor.const_data_ptr());
}

/// The base of a view of `tensor`, whose memory is lent: the method, and of a buffer that was given
/// memory what keeps that, as another may be bound while the view lives.
nb::object owner_of(const Tensor& tensor) {
  const nb::object method = nb::borrow(current_scope->owner);
  std::shared_ptr<void> memory = current_scope->method->state_owner(tensor.const_data_ptr());
  if (memory == nullptr) return method;
  struct Owner {
    nb::object method;
    std::shared_ptr<void> memory;
  };
  const auto release = [](void* kept) noexcept { delete static_cast<Owner*>(kept); };
  auto owner = std::make_unique<Owner>(Owner{method, std::move(memory)});
  nb::object base = nb::capsule(owner.get(), release);
  owner.release();
  return base;
}

/// An argument as a Python function gets it: tensors are views where their memory is lent, and
/// copies elsewhere.
nb::object to_argument(const etx_value& raw, bool writable) {
  const EValue& value = static_cast<const EValue&>(raw);
  if (value.tag() == Tag::ListTensor || value.tag() == Tag::ListOptionalTensor) {
    nb::list items;
    for (uint32_t i = 0; i < value.count; ++i) {
      const etx_value* item = value.payload.as_tensor_list[i];
      items.append(item == nullptr ? nb::object(nb::none()) : to_argument(*item, writable));
    }
    return items;
  }
  if (!value.is_tensor()) return to_python(value);
  const Tensor tensor = value.to_tensor();
  const bool is_constant = (tensor.impl()->flags & ETX_TENSOR_CONSTANT) != 0;
  if (is_lent(tensor)) {
    return view_tensor(tensor, owner_of(tensor), writable && !is_constant);
  }
  return copy_tensor(tensor);
}

void store(nb::handle result, const etx_value& raw, size_t position) {
  const std::string label = "result " + std::to_string(position);
  const EValue& value = static_cast<const EValue&>(raw);
  if (!value.is_tensor()) fail(PyExc_TypeError, label + ": the operator's output is not a tensor");
  const Tensor out = value.to_tensor();
  if ((out.impl()->flags & ETX_TENSOR_CONSTANT) != 0) {
    fail(PyExc_ValueError, label + ": the operator's output is constant");
  }
  Keep keep;
  ArrayView view;
  nb::object number;
  if (PyLong_Check(result.ptr()) || PyFloat_Check(result.ptr())) {
    number = from_number(result, out.scalar_type());
    if (number.is_valid()) result = number;
  }
  const char* reason = view_array(result, &view, &keep);
  const std::string expected = describe_tensor(out.scalar_type(), out.sizes());
  if (reason != nullptr) {
    fail(PyExc_TypeError,
         label + ": expected an array for " + expected + (*reason == '\0' ? "" : ": ") + reason);
  }
  if (view.type != out.scalar_type() || out.resize(view.shape()) != Error::Ok) {
    fail(PyExc_ValueError, label + ": " + describe_tensor(view.type, view.shape()) +
                               " does not fit the output " + expected);
  }
  if (out.numel() == 0) return;
  copy_strided(out.mutable_data_ptr(), out.strides().data(), view.data, view.strides, view.sizes,
               view.rank, out.element_size());
}

/// Writes what a function returned, unless it is None, into the last of `outs`.
void store_results(nb::handle results, etx_value* const* outs, size_t count, bool all) {
  if (results.is_none()) return;
  const bool is_sequence = PyTuple_Check(results.ptr()) || PyList_Check(results.ptr());
  const size_t given = is_sequence ? nb::len(results) : 1;
  if (given > count || (all && given != count)) {
    fail(PyExc_ValueError, "it returned " + std::to_string(given) + " results, the operator has " +
                               std::to_string(count));
  }
  for (size_t i = 0; i < given; ++i) {
    const nb::object result = is_sequence ? nb::object(results[i]) : nb::borrow(results);
    store(result, *outs[count - given + i], i);
  }
}

/// A registered object with the tables that C sees; never freed, as methods may use it. These hold
/// their own references to `object`.
struct Registered {
  explicit Registered(std::string name_, nb::object object_)
      : name(std::move(name_)), object(object_.release().ptr()) {
    plugin.struct_size = sizeof(etx_plugin);
    plugin.abi_major = ETX_ABI_MAJOR;
    plugin.abi_minor = ETX_ABI_MINOR;
    plugin.name = "Python";
    plugin.version = "";
  }
  std::string name;
  PyObject* object;
  etx_plugin plugin{};
};

struct PyKernel : etx_kernel, Registered {
  using Registered::Registered;
  etx_kernel_table table{};
  const etx_kernel_table* tables[1] = {&table};
};

struct PyBackend : etx_backend, Registered {
  using Registered::Registered;
  const etx_backend* backends[1] = {this};
};

bool is_among(etx_value* const* args, size_t count, const etx_value* value) {
  return std::find(args, args + count, value) != args + count;
}

/// What goes into a kernel, and which of that it returns: the arguments, and at the end those again
/// that are returned, one by one or as one list.
struct Arguments {
  Arguments(etx_value* const* args, size_t num_args) : count(num_args) {
    const etx_value* last = count == 0 ? nullptr : args[count - 1];
    if (last != nullptr && last->tag == ETX_TAG_LIST_TENSOR && last->count > 1) {
      for (uint32_t i = 0; i < last->count; ++i) {
        for (size_t k = 0; k + 1 < count; ++k) {
          if (args[k] == last->payload.as_tensor_list[i]) outs.push_back(args[k]);
        }
      }
      if (outs.size() == last->count) {
        --count;
        return;
      }
      outs.clear();
    }
    while (count > 1 && args[count - 1]->tag == ETX_TAG_TENSOR &&
           is_among(args, count - 1, args[count - 1])) {
      outs.insert(outs.begin(), args[--count]);
    }
  }

  size_t count;
  std::vector<etx_value*> outs;
};

etx_status run_kernel(etx_context* context, etx_value* const* args) {
  const auto& kernel = *static_cast<const PyKernel*>(context->kernel);
  const GilAcquired acquired;
  try {
    const Arguments arguments(args, context->num_args);
    const auto& outs = arguments.outs;
    nb::list given;
    for (size_t i = 0; i < arguments.count; ++i) {
      given.append(to_argument(*args[i], is_among(outs.data(), outs.size(), args[i])));
    }
    const nb::object results = call_python(kernel.object, *given);
    for (size_t i = 0; results.is_none() && i < arguments.count; ++i) {
      const bool is_out = is_among(outs.data(), outs.size(), args[i]);
      if (is_out && !is_lent(static_cast<const EValue*>(args[i])->to_tensor())) {
        store(given[i], *args[i], i);
      }
    }
    store_results(results, outs.data(), outs.size(), true);
    return 0;
  } catch (...) {
    keep_exception();
  }
  return context->fail(context, kFailed, "the Python kernel raised an exception");
}

const PyBackend& as_python(const etx_backend* self) { return *static_cast<const PyBackend*>(self); }

bool is_available(const etx_backend* self) {
  const GilAcquired acquired;
  try {
    const nb::handle object(as_python(self).object);
    if (!nb::hasattr(object, "is_available")) return true;
    const nb::object answer = call_python(object.attr("is_available"));
    return nb::cast<bool>(answer);
  } catch (...) {
    keep_exception();
  }
  return false;
}

/// What `init` is told besides its blob; `context` is null once it has returned.
struct InitData {
  etx_init_context* context;

  nb::object named_data(const std::string& key) const {
    if (context == nullptr) fail(PyExc_RuntimeError, "named data can only be read during init");
    const void* data = nullptr;
    size_t size = 0;
    if (context->named_data(context, key.c_str(), &data, &size) != 0) {
      fail(PyExc_KeyError, key);
    }
    return nb::bytes(data, size);
  }
};

nb::dict read_options(const etx_init_context& context) {
  nb::dict options;
  for (size_t i = 0; i < context.num_options; ++i) {
    options[context.options[i].key] =
        to_python(*static_cast<const EValue*>(&context.options[i].value));
  }
  return options;
}

etx_status init(const etx_backend* self, etx_init_context* context, const void* blob, size_t size,
                const etx_compile_spec* specs, size_t num_specs, void** handle) {
  const GilAcquired acquired;
  const auto data = std::make_shared<InitData>(InitData{context});
  try {
    nb::dict values;
    for (size_t i = 0; i < num_specs; ++i) {
      values[specs[i].key] = nb::bytes(specs[i].value, specs[i].size);
    }
    const nb::object type = nb::module_::import_("etx_runtime.callbacks").attr("CompileSpecs");
    const nb::object given =
        type(values, context->method,
             nb::cpp_function([data](const std::string& key) { return data->named_data(key); }),
             read_options(*context));
    nb::object made =
        call_python(nb::handle(as_python(self).object).attr("init"), nb::bytes(blob, size), given);
    data->context = nullptr;
    *handle = made.ptr();
    current_load->keep_handle(std::move(made));
    return 0;
  } catch (...) {
    keep_exception();
  }
  data->context = nullptr;
  return context->fail(context, kFailed, "its init raised an exception");
}

/// Whom a Python backend that executes on this thread tells its events.
thread_local etx_context* traced = nullptr;

struct TraceScope {
  explicit TraceScope(etx_context* context) : outer(traced) { traced = context; }
  ~TraceScope() { traced = outer; }
  etx_context* outer;
};

etx_status execute(const etx_backend* self, void* handle, etx_context* context,
                   etx_value* const* args, size_t num_args) {
  const GilAcquired acquired;
  const TraceScope tracing(context);
  try {
    nb::list given;
    for (size_t i = 0; i < num_args; ++i) given.append(to_argument(*args[i], true));
    const nb::object results = call_python(nb::handle(as_python(self).object).attr("execute"),
                                           nb::handle(static_cast<PyObject*>(handle)), given);
    store_results(results, args, num_args, false);
    return 0;
  } catch (...) {
    keep_exception();
  }
  return context->fail(context, kFailed, "the Python backend raised an exception");
}

/// Also while an exception unwinds the frame that held the method.
void destroy(const etx_backend* self, void* handle) {
  const GilAcquired acquired;
  const nb::error_scope raised;
  const nb::object state = nb::borrow(static_cast<PyObject*>(handle));
  try {
    const nb::handle object(as_python(self).object);
    if (nb::hasattr(object, "destroy")) call_python(object.attr("destroy"), state);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("destroy");
  }
}

/// What is registered, and what was while a load went on.
struct Registrations {
  std::mutex mutex;
  std::vector<Registered*> entries;
  std::vector<Registered*> removed;
  size_t loads = 0;

  static Registrations& shared() {
    static Registrations& all = *new Registrations();
    return all;
  }

  void add(Registered* entry) {
    std::string message;
    Plugins::shared().add_first(&entry->plugin, &message);
    const std::lock_guard<std::mutex> lock(mutex);
    entries.push_back(entry);
  }

  /// Moves what matches to `removed`, and returns the objects to let go of outside of the lock.
  template <typename Matches>
  bool remove(Matches matches) {
    std::vector<PyObject*> free;
    bool found = false;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      std::vector<Registered*> left;
      for (Registered* entry : entries) (matches(*entry) ? removed : left).push_back(entry);
      found = left.size() != entries.size();
      entries = std::move(left);
      for (Registered* entry : removed) Plugins::shared().remove(&entry->plugin);
      free = release();
    }
    for (PyObject* object : free) Py_DECREF(object);
    return found;
  }

  std::vector<PyObject*> release() {
    std::vector<PyObject*> free;
    if (loads != 0) return free;
    for (Registered* entry : removed) free.push_back(entry->object);
    removed.clear();
    return free;
  }
};

/// Lets go of everything before the interpreter ends.
void clear_at_exit() {
  static std::atomic<bool> is_set{false};
  if (is_set.exchange(true)) return;
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    forget_python_exception();
    Registrations::shared().remove([](const Registered&) { return true; });
  }));
}

}  // namespace

CallScope::CallScope(nb::handle owner_, LoadedMethod* method_)
    : owner(owner_), method(method_), outer_(current_scope) {
  current_scope = this;
}

CallScope::~CallScope() { current_scope = outer_; }

LoadScope::LoadScope() : outer_(current_load) {
  current_load = this;
  Registrations& all = Registrations::shared();
  const std::lock_guard<std::mutex> lock(all.mutex);
  ++all.loads;
}

LoadScope::~LoadScope() {
  current_load = outer_;
  Registrations& all = Registrations::shared();
  std::vector<PyObject*> free;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    --all.loads;
    free = all.release();
  }
  for (PyObject* object : free) Py_DECREF(object);
}

std::vector<nb::object> LoadScope::callbacks() const {
  Registrations& all = Registrations::shared();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<nb::object> objects;
  for (const Registered* entry : all.entries) objects.push_back(nb::borrow(entry->object));
  for (const Registered* entry : all.removed) objects.push_back(nb::borrow(entry->object));
  return objects;
}

nb::object take_python_exception() {
  if (pending == nullptr) return nb::object();
  nb::object exception = nb::steal(pending);
  pending = nullptr;
  if (PyObject_IsInstance(exception.ptr(), PyExc_Exception) == 1) return exception;
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

void forget_python_exception() {
  PyObject* dropped = pending;
  pending = nullptr;
  Py_XDECREF(dropped);
}

std::string describe_exception(nb::handle exception) {
  const auto encode = [](nb::handle text) -> std::string {
    const nb::object bytes =
        nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
    if (!bytes.is_valid()) throw nb::python_error();
    return nb::borrow<nb::bytes>(bytes).c_str();
  };
  const std::string name = encode(exception.type().attr("__name__"));
  const nb::object text = nb::steal(PyObject_Str(exception.ptr()));
  if (text.is_valid()) return name + ": " + encode(text);
  PyErr_Clear();
  return name;
}

void register_kernel(const std::string& name, nb::object function) {
  auto* kernel = new PyKernel(name, std::move(function));
  static_cast<etx_kernel&>(*kernel) = {kernel->Registered::name.c_str(), run_kernel, "*", 0};
  kernel->table = {kernel, 1};
  kernel->plugin.tables = kernel->tables;
  kernel->plugin.num_tables = 1;
  clear_at_exit();
  Registrations::shared().add(kernel);
}

void register_backend(const std::string& name, nb::object backend) {
  auto* made = new PyBackend(name, std::move(backend));
  static_cast<etx_backend&>(*made) = {sizeof(etx_backend),
                                      made->Registered::name.c_str(),
                                      nullptr,
                                      is_available,
                                      init,
                                      execute,
                                      destroy};
  made->plugin.backends = made->backends;
  made->plugin.num_backends = 1;
  clear_at_exit();
  Registrations::shared().add(made);
}

bool trace_event(const std::variant<int32_t, std::string>& id, uint64_t start, uint64_t end,
                 const nb::bytes& metadata) {
  if (traced == nullptr || traced->trace == nullptr) return false;
  etx_delegate_event event{};
  if (std::holds_alternative<std::string>(id)) {
    event.name = std::get<std::string>(id).c_str();
  } else {
    event.id = std::get<int32_t>(id);
  }
  event.start = start;
  event.end = end;
  event.metadata = metadata.c_str();
  event.metadata_size = metadata.size();
  traced->trace(traced, &event);
  return true;
}

bool unregister(const std::string& name) {
  return Registrations::shared().remove(
      [&](const Registered& entry) { return entry.name == name; });
}

}  // namespace python
}  // namespace etx
