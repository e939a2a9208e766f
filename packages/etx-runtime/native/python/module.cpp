// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <optional>
#include <tuple>

#include <etx/platform.h>

#include "convert.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace etx {
namespace python {
namespace {

using Event = std::tuple<uint32_t, std::string, uint64_t>;

/// What a Python program shares with its methods.
struct PyProgram {
  std::shared_ptr<LoadedProgram> loaded;

  MethodMeta meta(const std::string& name) const {
    return value_of(loaded->program().method_meta(name.c_str()), "the program has no such method");
  }
};

/// Keeps the durations of instructions.
class Recorder final : public EventTracer {
 public:
  ~Recorder() = default;
  void begin_execution(const char*) override {}
  void end_execution(uint64_t, uint64_t) override {}
  void event(const TraceEvent& event) override {
    static constexpr const char* kNames[] = {"kernel", "delegate", "move", "jump", "free"};
    std::string name = event.name == nullptr ? kNames[static_cast<size_t>(event.kind)] : event.name;
    if (event.overload != nullptr && *event.overload != '\0') {
      name += std::string(".") + event.overload;
    }
    events.emplace_back(event.instruction, std::move(name), event.end - event.start);
  }
  std::vector<Event> events;
};

class PyMethod {
 public:
  PyMethod(const PyProgram& program, const std::string& name, std::vector<std::string> inputs) {
    ErrorText error;
    loaded_ = LoadedMethod::load(program.loaded, name, &error);
    if (loaded_ == nullptr) throw Raised("LoadError", error);
    loaded_->set_input_names(std::move(inputs));
  }

  nb::list execute(nb::list inputs) {
    const Use use(*this);
    return run(inputs);
  }

  std::pair<nb::list, std::vector<Event>> profile(nb::list inputs) {
    const Use use(*this);
    Recorder recorder;
    loaded_->method().set_tracer(&recorder);
    nb::list outputs;
    try {
      outputs = run(inputs);
    } catch (...) {
      loaded_->method().set_tracer(nullptr);
      throw;
    }
    loaded_->method().set_tracer(nullptr);
    for (Event& event : recorder.events) std::get<1>(event) = clean(std::get<1>(event));
    return {outputs, std::move(recorder.events)};
  }

  /// Nanoseconds of each of `iterations` executions, the conversion of arrays not counted.
  std::vector<uint64_t> time_executions(nb::list inputs, size_t iterations) {
    const Use use(*this);
    run(inputs);
    std::vector<uint64_t> times(iterations);
    ErrorText error;
    bool ok = true;
    {
      const nb::gil_scoped_release released;
      for (size_t i = 0; ok && i < iterations; ++i) {
        const uint64_t start = etx_pal_current_ticks();
        ok = loaded_->execute(&error);
        times[i] = etx_pal_current_ticks() - start;
      }
    }
    if (!ok) throw Raised("ExecutionError", error);
    return times;
  }

  nb::object input_value(size_t index) {
    Method& method = loaded_->method();
    if (index >= method.inputs_size()) {
      raise("MetadataError", Error::InvalidArgument, "there is no such input");
    }
    return to_python(method.get_input(index));
  }

  void reset_state() {
    const Use use(*this);
    const Error error = loaded_->method().reset_state();
    if (error != Error::Ok) raise("ExecutionError", error, "the initial values cannot be read");
  }

  nb::object attribute(const std::string& name) {
    const Use use(*this);
    return to_array(value_of(loaded_->method().get_attribute(name.c_str()),
                             "the method has no buffer of this name"));
  }

  void set_budget(uint64_t instructions) { loaded_->method().set_instruction_budget(instructions); }

  MethodMeta meta() const { return loaded_->method().method_meta(); }
  const LoadedMethod& loaded() const { return *loaded_; }

 private:
  /// Refuses a second thread while one executes.
  struct Use {
    explicit Use(PyMethod& method_) : method(method_) {
      if (method.is_busy_.exchange(true)) {
        raise("ExecutionError", Error::InvalidState,
              "the method is executing in another thread; load it once a thread");
      }
    }
    ~Use() { method.is_busy_ = false; }
    PyMethod& method;
  };

  nb::list run(const nb::list& inputs) {
    Method& method = loaded_->method();
    if (inputs.size() != method.inputs_size()) {
      raise("InputError", Error::InvalidArgument,
            std::string(meta().name()) + " takes " + std::to_string(method.inputs_size()) +
                " inputs, got " + std::to_string(inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) set_input(*loaded_, i, inputs[i]);
    ErrorText error;
    bool ok;
    {
      const nb::gil_scoped_release released;
      ok = loaded_->execute(&error);
    }
    if (!ok) throw Raised("ExecutionError", error);
    nb::list outputs;
    for (size_t i = 0; i < method.outputs_size(); ++i) {
      outputs.append(to_python(method.get_output(i)));
    }
    return outputs;
  }

  std::unique_ptr<LoadedMethod> loaded_;
  std::atomic<bool> is_busy_{false};
};

LoadedProgram::Options make_options(bool mmap, bool verify, std::vector<std::string> data_paths) {
  LoadedProgram::Options options;
  options.use_mmap = mmap;
  options.verification = verify ? Program::Verification::Full : Program::Verification::Minimal;
  options.data_paths = std::move(data_paths);
  return options;
}

PyProgram load_file(const std::string& path, bool mmap, bool verify,
                    std::vector<std::string> data_paths) {
  ErrorText error;
  PyProgram program{
      LoadedProgram::from_file(path, make_options(mmap, verify, std::move(data_paths)), &error)};
  if (program.loaded == nullptr) throw Raised("LoadError", error);
  return program;
}

PyProgram load_buffer(nb::handle object, bool verify, std::vector<std::string> data_paths) {
  auto* view = new Py_buffer();
  if (PyObject_GetBuffer(object.ptr(), view, PyBUF_SIMPLE) != 0) {
    delete view;
    throw nb::python_error();
  }
  const std::shared_ptr<void> owner(view, [](void* raw) {
    const nb::gil_scoped_acquire acquired;
    PyBuffer_Release(static_cast<Py_buffer*>(raw));
    delete static_cast<Py_buffer*>(raw);
  });
  ErrorText error;
  PyProgram program{LoadedProgram::from_memory(view->buf, static_cast<size_t>(view->len), owner,
                                               make_options(true, verify, std::move(data_paths)),
                                               &error)};
  if (program.loaded == nullptr) throw Raised("LoadError", error);
  return program;
}

std::vector<std::string> method_names(const PyProgram& self) {
  std::vector<std::string> names;
  const Program& program = self.loaded->program();
  for (size_t i = 0; i < program.num_methods(); ++i)
    names.push_back(clean(*program.get_method_name(i)));
  return names;
}

std::optional<nb::bytes> named_data(const PyProgram& self, const std::string& key) {
  auto data = self.loaded->program().load_named_data(key.c_str());
  if (!data.ok()) return std::nullopt;
  return nb::bytes(data->data(), data->size());
}

std::pair<std::string, std::string> load_plugin(const std::string& path) {
  std::string message;
  const etx_plugin* plugin = Plugins::shared().load(path, &message);
  if (plugin == nullptr) raise("PluginError", Error::NotFound, message);
  return {plugin->name, plugin->version};
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const etx_plugin* plugin : Plugins::shared().list()) {
    for (size_t t = 0; t < plugin->num_tables; ++t) {
      const etx_kernel_table& table = *plugin->tables[t];
      for (size_t i = 0; i < table.count; ++i) names.emplace_back(table.rows[i].name);
    }
  }
  return names;
}

std::vector<std::pair<std::string, bool>> backends() {
  std::vector<std::pair<std::string, bool>> found;
  for (const etx_plugin* plugin : Plugins::shared().list()) {
    for (size_t i = 0; i < plugin->num_backends; ++i) {
      const etx_backend* backend = plugin->backends[i];
      found.emplace_back(backend->name,
                         backend->is_available == nullptr || backend->is_available(backend));
    }
  }
  return found;
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Raised& raised) {
    const ErrorText& text = raised.text;
    const nb::object type = nb::module_::import_("etx_runtime.errors").attr(raised.kind);
    const nb::object error = type(clean(text.message), static_cast<uint32_t>(text.error),
                                  clean(text.name), text.instruction, text.index);
    PyErr_SetObject(type.ptr(), error.ptr());
  }
}

}  // namespace

NB_MODULE(_native, m) {
  nb::register_exception_translator(translate);
  bind_metadata(m);
  nb::class_<PyProgram>(m, "Program", "The bytes of a program file, verified.")
      .def("method_names", method_names)
      .def("method_meta", &PyProgram::meta, "name"_a, nb::keep_alive<0, 1>())
      .def("named_data", named_data, "key"_a);
  nb::class_<PyMethod>(m, "Method", "A method with its memory.")
      .def(nb::init<const PyProgram&, const std::string&, std::vector<std::string>>(), "program"_a,
           "name"_a, "input_names"_a)
      .def("execute", &PyMethod::execute, "inputs"_a,
           nb::sig("def execute(self, inputs: list[object]) -> list[object]"))
      .def("profile", &PyMethod::profile, "inputs"_a,
           nb::sig("def profile(self, inputs: list[object]) -> "
                   "tuple[list[object], list[tuple[int, str, int]]]"))
      .def("time_executions", &PyMethod::time_executions, "inputs"_a, "iterations"_a,
           nb::sig("def time_executions(self, inputs: list[object], iterations: int) -> list[int]"))
      .def("input_value", &PyMethod::input_value, "index"_a)
      .def("reset_state", &PyMethod::reset_state)
      .def("attribute", &PyMethod::attribute, "name"_a)
      .def("set_instruction_budget", &PyMethod::set_budget, "instructions"_a)
      .def("method_meta", &PyMethod::meta, nb::keep_alive<0, 1>())
      .def("planned_bytes", [](const PyMethod& self) { return self.loaded().planned_bytes(); })
      .def("method_bytes", [](const PyMethod& self) { return self.loaded().method_bytes(); })
      .def("temp_bytes", [](const PyMethod& self) { return self.loaded().temp_bytes(); });
  m.def("load_file", load_file, "path"_a, "mmap"_a, "verify"_a, "data_paths"_a);
  m.def("load_buffer", load_buffer, "data"_a, "verify"_a, "data_paths"_a,
        nb::sig("def load_buffer(data: object, verify: bool, data_paths: collections.abc.Sequence"
                "[str]) -> Program"));
  m.def("load_plugin", load_plugin, "path"_a);
  m.def("operator_names", operator_names);
  m.def("backends", backends);
  m.def("set_num_threads", [](uint32_t n) { ThreadPool::shared().resize(n); }, "num_threads"_a);
  m.def("num_threads", [] { return ThreadPool::shared().num_threads(); });
  m.attr("ABI_VERSION") = std::to_string(ETX_ABI_MAJOR) + "." + std::to_string(ETX_ABI_MINOR);
}

}  // namespace python
}  // namespace etx
