// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include <etx/hosted/log.h>

#include "callbacks.h"
#include "gil.h"
#include "interrupt.h"
#include "log_sink.h"
#include "method.h"
#include "recorder.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace etx {
namespace python {
namespace {

/// The bytes of a Python object, aligned to 16, and what keeps them alive: the object itself, or a
/// copy where it may be written to while it is in use.
struct Bytes {
  std::shared_ptr<void> owner;
  const void* data;
  size_t size;
};

Bytes bytes_of(nb::handle object) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto release = [](Py_buffer* buffer) {
    const GilAcquired acquired;
    PyBuffer_Release(buffer);
    delete buffer;
  };
  const std::shared_ptr<Py_buffer> owner(view.release(), release);
  const auto size = static_cast<size_t>(owner->len);
  const bool is_aligned = reinterpret_cast<uintptr_t>(owner->buf) % 16 == 0;
  if (is_aligned && owner->readonly != 0) return {owner, owner->buf, size};
  std::shared_ptr<void> copy(std::malloc(size + 1), std::free);
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy.get(), owner->buf, size);
  const void* data = copy.get();
  return {std::move(copy), data, size};
}

/// A `.ptd` file in a Python object's memory.
class BytesLoader final : public DataLoader {
 public:
  explicit BytesLoader(Bytes bytes) : bytes_(std::move(bytes)), loader_(bytes_.data, bytes_.size) {}
  ~BytesLoader() = default;
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    return loader_.load(offset, size, info);
  }
  Result<size_t> size() const override { return loader_.size(); }

 private:
  Bytes bytes_;
  BufferDataLoader loader_;
};

/// A path as the file system has it, which need not be UTF-8.
std::string path_of(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const nb::bytes owner = nb::steal<nb::bytes>(bytes);
  return {owner.c_str(), owner.size()};
}

/// A plugin that only programs which name it use.
struct PyPlugin {
  const etx_plugin* plugin;
};

LoadedProgram::Options make_options(bool mmap, bool verify, const nb::list& data,
                                    const nb::list& kernels) {
  LoadedProgram::Options options;
  for (const nb::handle item : kernels) {
    options.kernels.push_back(nb::cast<const PyPlugin&>(item).plugin);
  }
  options.use_mmap = mmap;
  options.verification = verify ? Program::Verification::Full : Program::Verification::Minimal;
  for (const nb::handle item : data) {
    if (nb::isinstance<nb::str>(item)) {
      options.data_paths.push_back(path_of(item));
    } else {
      options.data_loaders.push_back(std::make_shared<const BytesLoader>(bytes_of(item)));
    }
  }
  return options;
}

PyProgram load_file(const nb::str& name, bool mmap, bool verify, const nb::list& data,
                    const nb::list& kernels) {
  const LoadedProgram::Options options = make_options(mmap, verify, data, kernels);
  const std::string path = path_of(name);
  ErrorText error;
  PyProgram program;
  {
    const GilReleased released;
    program.loaded = LoadedProgram::from_file(path, options, &error);
  }
  if (program.loaded == nullptr) throw Raised("LoadError", error);
  return program;
}

PyProgram load_buffer(nb::handle object, bool mmap, bool verify, const nb::list& data,
                      const nb::list& kernels) {
  const LoadedProgram::Options options = make_options(mmap, verify, data, kernels);
  const Bytes bytes = bytes_of(object);
  ErrorText error;
  PyProgram program;
  {
    const GilReleased released;
    program.loaded =
        LoadedProgram::from_memory(bytes.data, bytes.size, bytes.owner, options, &error);
  }
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

std::pair<std::string, std::string> load_plugin(const nb::str& path) {
  std::string message;
  const etx_plugin* plugin = Plugins::shared().load(path_of(path), &message);
  if (plugin == nullptr) raise("PluginError", Error::NotFound, message);
  return {clean(plugin->name), clean(plugin->version)};
}

PyPlugin open_plugin(const nb::str& path) {
  std::string message;
  const etx_plugin* plugin = Plugins::shared().open(path_of(path), &message);
  if (plugin == nullptr) raise("PluginError", Error::NotFound, message);
  return {plugin};
}

std::vector<std::string> operators_of(const std::vector<const etx_plugin*>& plugins) {
  std::vector<std::string> names;
  for (const etx_plugin* plugin : plugins) {
    for (size_t t = 0; t < plugin->num_tables; ++t) {
      const etx_kernel_table& table = *plugin->tables[t];
      for (size_t i = 0; i < table.count; ++i) names.push_back(clean(table.rows[i].name));
    }
  }
  return names;
}

std::vector<std::string> operator_names() { return operators_of(Plugins::shared().list()); }

std::vector<std::string> program_operators(const PyProgram& self) {
  std::vector<etx_plugin> rest;
  return operators_of(Plugins::shared().list(self.loaded->kernels(), &rest));
}

std::vector<std::pair<std::string, bool>> backends() {
  // An `is_available` in Python may take others away.
  const LoadScope scope;
  std::vector<std::pair<std::string, bool>> found;
  for (const etx_plugin* plugin : Plugins::shared().list()) {
    for (size_t i = 0; i < plugin->num_backends; ++i) {
      const etx_backend* backend = plugin->backends[i];
      found.emplace_back(clean(backend->name),
                         backend->is_available == nullptr || backend->is_available(backend));
      take_python_exception();
    }
  }
  return found;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<PyMethod>(self)->traverse(visit, arg);
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyMethod>(self)->clear();
  return 0;
}

/// Before the garbage collector clears anything.
void finalize(PyObject* self) {
  const nb::error_scope raised;
  if (nb::inst_ready(self)) nb::inst_ptr<PyMethod>(self)->unload();
}

PyType_Slot method_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear)},
                              {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
                              {0, nullptr}};

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Raised& raised) {
    set_python_error(raised);
  }
}

void bind_programs(nb::module_& m) {
  nb::class_<PyProgram>(m, "Program", "The bytes of a program file, verified.")
      .def("method_names", method_names)
      .def("method_meta", &PyProgram::meta, "name"_a, nb::keep_alive<0, 1>())
      .def("named_data", named_data, "key"_a)
      .def("available_operators", program_operators,
           "Names of the kernels that its methods may use.");
  nb::class_<PyPlugin>(m, "Plugin", "A plugin that only programs which name it use.")
      .def_prop_ro("name", [](const PyPlugin& self) { return clean(self.plugin->name); })
      .def_prop_ro("version", [](const PyPlugin& self) { return clean(self.plugin->version); });
  m.def("load_plugin", load_plugin, "path"_a);
  m.def("open_plugin", open_plugin, "path"_a);
}

void bind_log(nb::module_& m) {
  m.def(
      "set_log_level", [](int level) { set_log_level(static_cast<etx_log_level>(level)); },
      "level"_a);
  m.def("set_log_sink", set_sink, "sink"_a.none(),
        nb::sig("def set_log_sink(sink: collections.abc.Callable[[str, str], object] | None) -> "
                "None"));
}

}  // namespace

NB_MODULE(_native, m) {
  nb::register_exception_translator(translate);
  set_log_level(ETX_LOG_FATAL);
  bind_metadata(m);
  bind_programs(m);
  bind_compare(m);
  bind_recorder(m);
  nb::class_<PyMethod>(m, "Method", nb::type_slots(method_slots), "A method with its memory.")
      .def(nb::init<const PyProgram&, const std::string&, std::vector<std::string>, nb::object,
                    nb::object, const std::vector<PyMethod*>&, const std::vector<Option>&,
                    PyRecorder*>(),
           "program"_a, "name"_a, "input_names"_a, "origin"_a.none(), "check"_a.none(), "sharing"_a,
           "options"_a, "recorder"_a.none(),
           nb::sig("def __init__(self, program: Program, name: str, input_names: "
                   "collections.abc.Sequence[str], origin: collections.abc.Callable[[int], str] | "
                   "None, check: collections.abc.Callable[[list[typing.Any]], None] | None, "
                   "sharing: collections.abc.Sequence[Method], options: "
                   "collections.abc.Sequence[tuple[str, str, bool | int | str]], recorder: "
                   "Recorder | None) -> None"))
      .def("execute", &PyMethod::execute, "inputs"_a, "borrow"_a,
           nb::sig("def execute(self, inputs: collections.abc.Sequence[object], borrow: bool) -> "
                   "list[typing.Any]"))
      .def(
          "caller", [](nb::handle self, bool borrow) { return make_caller(self, true, borrow); },
          "borrow"_a,
          nb::sig("def caller(self, borrow: bool) -> collections.abc.Callable["
                  "[collections.abc.Sequence[object]], list[typing.Any]]"),
          "A function of the inputs that returns the outputs.")
      .def(
          "flat_caller",
          [](nb::handle self, bool borrow) { return make_caller(self, false, borrow); }, "borrow"_a,
          nb::sig("def flat_caller(self, borrow: bool) -> collections.abc.Callable[..., "
                  "typing.Any]"),
          "The same with each input as an argument; a single output is returned as it is.")
      .def("trace", &PyMethod::trace, "inputs"_a, "recorder"_a, "iterations"_a,
           nb::sig("def trace(self, inputs: collections.abc.Sequence[object], recorder: Recorder, "
                   "iterations: int) -> list[typing.Any]"))
      .def("profile", &PyMethod::profile, "inputs"_a,
           nb::sig("def profile(self, inputs: collections.abc.Sequence[object]) -> "
                   "tuple[list[typing.Any], list[tuple[int, str, int]]]"))
      .def("time_executions", &PyMethod::time_executions, "inputs"_a, "iterations"_a,
           nb::sig("def time_executions(self, inputs: collections.abc.Sequence[object], "
                   "iterations: int) -> list[int]"))
      .def("input_value", &PyMethod::input_value, "index"_a)
      .def("reset_state", &PyMethod::reset_state)
      .def("get_attribute", &PyMethod::get_attribute, "name"_a)
      .def("set_attribute", &PyMethod::set_attribute, "name"_a, "value"_a)
      .def("has_attribute", &PyMethod::has_attribute, "name"_a)
      .def("bind_attribute", &PyMethod::bind_attribute, "name"_a, "value"_a)
      .def("cancel", &PyMethod::cancel)
      .def("seed", &PyMethod::seed, "seed"_a)
      .def("set_instruction_budget", &PyMethod::set_budget, "instructions"_a)
      .def("method_meta", &PyMethod::meta, nb::keep_alive<0, 1>())
      .def("kernel_rows", [](const PyMethod& self) { return self.loaded().kernel_rows(); })
      .def("planned_bytes", [](const PyMethod& self) { return self.loaded().planned_bytes(); })
      .def("method_bytes", [](const PyMethod& self) { return self.loaded().method_bytes(); })
      .def("temp_bytes", [](const PyMethod& self) { return self.loaded().temp_bytes(); });
  m.def("load_file", load_file, "path"_a, "mmap"_a, "verify"_a, "data"_a, "kernels"_a,
        nb::sig("def load_file(path: str, mmap: bool, verify: bool, data: list[str | object], "
                "kernels: list[Plugin]) -> Program"));
  m.def("load_buffer", load_buffer, "content"_a, "mmap"_a, "verify"_a, "data"_a, "kernels"_a,
        nb::sig("def load_buffer(content: object, mmap: bool, verify: bool, "
                "data: list[str | object], kernels: list[Plugin]) -> Program"));
  m.def("operator_names", operator_names);
  m.def("backends", backends);
  m.def("register_kernel", register_kernel, "name"_a, "function"_a);
  m.def("register_backend", register_backend, "name"_a, "backend"_a);
  m.def("unregister", unregister, "name"_a);
  m.def("ticks", etx_pal_current_ticks);
  m.def("trace_event", trace_event, "id"_a, "start"_a, "end"_a, "metadata"_a);
  m.def("to_bits", to_bits, "array"_a, nb::sig("def to_bits(array: object) -> typing.Any"));
  m.def("from_bits", from_bits, "bits"_a, "dtype"_a,
        nb::sig("def from_bits(bits: object, dtype: str) -> typing.Any"));
  m.def("set_num_threads", [](uint32_t n) { ThreadPool::shared().resize(n); }, "num_threads"_a);
  m.def("num_threads", [] { return ThreadPool::shared().num_threads(); });
  find_main_thread();
  bind_log(m);
  m.attr("ABI_VERSION") = std::to_string(ETX_ABI_MAJOR) + "." + std::to_string(ETX_ABI_MINOR);
}

}  // namespace python
}  // namespace etx
