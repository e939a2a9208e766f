// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PYTHON_METHOD_H_
#define ETX_NATIVE_PYTHON_METHOD_H_

#include <atomic>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "convert.h"

namespace etx {
namespace python {

/// What a Python program shares with its methods.
struct PyProgram {
  std::shared_ptr<LoadedProgram> loaded;

  MethodMeta meta(const std::string& name) const {
    return value_of(loaded->program().method_meta(name.c_str()), "the program has no such method");
  }
};

/// Instruction, operator, nanoseconds.
using Event = std::tuple<uint32_t, std::string, uint64_t>;

/// Backend, key, value.
using Option = std::tuple<std::string, std::string, std::variant<bool, int64_t, std::string>>;

class PyRecorder;

/// A method that one thread uses at a time; a second one gets an error.
class PyMethod {
 public:
  /// How the outputs of a call are handed over.
  struct Style {
    /// One list, else the single output itself or a tuple of them.
    bool as_list;
    /// Views of the method's memory where it owns an output, else copies.
    bool borrow;
  };

  /// `origin` takes the index of an instruction and returns where it comes from, as text; `check`
  /// takes a list with the shape or the number of each input, and raises. Both may be None.
  /// `options` are (backend, key, value) with a bool, an int or a text. `recorder` gets the events
  /// of the load; may be null.
  PyMethod(const PyProgram& program, const std::string& name, std::vector<std::string> inputs,
           nanobind::object origin, nanobind::object check, const std::vector<PyMethod*>& sharing,
           const std::vector<Option>& options, PyRecorder* recorder);

  /// Runs with `count` inputs, the GIL released. Throws Raised.
  nanobind::object run(PyObject* const* inputs, size_t count, Style style);
  nanobind::object execute(nanobind::handle inputs, bool borrow);
  /// As execute, and `iterations` times more; the recorder gets the events.
  nanobind::object trace(nanobind::handle inputs, PyRecorder& recorder, size_t iterations);
  std::pair<nanobind::object, std::vector<Event>> profile(nanobind::handle inputs);
  /// Nanoseconds of each of `iterations` executions, the conversion of arrays not counted.
  std::vector<uint64_t> time_executions(nanobind::handle inputs, size_t iterations);

  nanobind::object input_value(size_t index);
  void reset_state();
  nanobind::object get_attribute(const std::string& name);
  void set_attribute(const std::string& name, nanobind::handle value);
  bool has_attribute(const std::string& name) const;
  /// Makes the memory of `value` that of a buffer which the file leaves to the caller.
  void bind_attribute(const std::string& name, nanobind::handle value);
  /// From any thread.
  void cancel() { loaded().method().cancel(); }
  void seed(uint64_t seed);
  void set_budget(uint64_t instructions) { loaded().method().set_instruction_budget(instructions); }

  MethodMeta meta() const { return loaded().method().method_meta(); }
  /// Throws Raised once the garbage collector has cleared this object.
  LoadedMethod& loaded() const;

  ~PyMethod() { unload(); }
  PyMethod(const PyMethod&) = delete;
  PyMethod& operator=(const PyMethod&) = delete;

  /// For Python's garbage collector.
  int traverse(visitproc visit, void* arg) const;
  void clear();
  /// Destroys the delegates, as long as all that they refer to is there.
  void unload();

 private:
  struct Use;
  struct Tracing;
  void execute_released();
  template <typename Execute>
  void repeat(const std::vector<PyObject*>& inputs, size_t iterations, const Execute& execute);
  void check_inputs();
  void set_inputs(PyObject* const* inputs, size_t count, Keep* keep);
  std::vector<PyObject*> copy_own(PyObject* const* inputs, size_t count, Keep* keep);
  std::vector<PyObject*> list_inputs(nanobind::handle inputs, Keep* keep);
  nanobind::object run_list(nanobind::handle inputs, bool borrow, Keep* keep);
  nanobind::object run_unguarded(PyObject* const* inputs, size_t count, Style style, Keep* keep);
  Raised failure(const char* kind, ErrorText text) const;
  Tensor view_attribute(const std::string& name, nanobind::handle value, ArrayView* view,
                        Keep* keep);
  static void check_bound(const std::string& name, Error error);

  /// The Python kernels and backends that the method may use.
  std::vector<nanobind::object> callbacks_;
  /// What the `init` of Python backends returned; their delegates borrow it.
  std::vector<nanobind::object> handles_;
  /// What lives as long as views of tensors, which may outlive this object: the garbage collector
  /// does not look into NumPy's arrays, so that they must not keep the kernels alive that made
  /// them.
  struct Loaded {
    std::unique_ptr<LoadedMethod> method;
  };
  nanobind::object origin_;
  nanobind::object check_;
  std::shared_ptr<Loaded> loaded_ = std::make_shared<Loaded>();
  /// Views of the method's memory may be in Python's hands.
  bool has_lent_ = false;
  /// The base of views: shares `loaded_`.
  nanobind::object memory_;
  /// One for all methods that share state.
  std::shared_ptr<std::atomic<bool>> is_busy_ = std::make_shared<std::atomic<bool>>(false);
};

/// A callable without dispatch of its own: with `as_list` it takes one sequence of inputs, else
/// the inputs themselves. `method` is the PyMethod's Python object.
nanobind::object make_caller(nanobind::handle method, bool as_list, bool borrow);

}  // namespace python
}  // namespace etx

#endif  // ETX_NATIVE_PYTHON_METHOD_H_
