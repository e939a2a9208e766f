// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>

#include "method.h"

#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

namespace nb = nanobind;

namespace etx {
namespace python {
namespace {

/// A Python object that is called without a dispatch over signatures.
struct Caller {
  PyObject_HEAD vectorcallfunc call;
  PyObject* owner;
  PyMethod* method;
  PyMethod::Style style;
};

/// The items of a short list, each with a reference: the list may change while the method executes.
struct Items {
  static constexpr Py_ssize_t kMost = 8;

  explicit Items(PyObject* list) : count(PyList_Size(list)) {
    for (Py_ssize_t i = 0; i < count; ++i) Py_INCREF(pointers[i] = PyList_GetItem(list, i));
  }
  ~Items() {
    for (Py_ssize_t i = 0; i < count; ++i) Py_DECREF(pointers[i]);
  }
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  PyObject* pointers[kMost];
  Py_ssize_t count;
};

nb::object run_sequence(Caller& caller, PyObject* inputs) {
#ifndef NB_FREE_THREADED
  if (PyList_Check(inputs) && PyList_Size(inputs) <= Items::kMost) {
    const Items items(inputs);
    const auto count = static_cast<size_t>(items.count);
    return caller.method->run(items.pointers, count, caller.style);
  }
#endif
  return caller.method->execute(inputs, caller.style.borrow);
}

PyObject* call(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  Caller& caller = *reinterpret_cast<Caller*>(self);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flagged));
  try {
    if (names != nullptr && PyTuple_Size(names) != 0) {
      raise("InputError", Error::InvalidArgument, "this call takes no keyword arguments");
    }
    if (!caller.style.as_list) {
      return caller.method->run(args, count, caller.style).release().ptr();
    }
    if (count != 1) {
      raise("InputError", Error::InvalidArgument, "this call takes one sequence of inputs");
    }
    return run_sequence(caller, args[0]).release().ptr();
  } catch (const Raised& raised) {
    set_python_error(raised);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

int traverse_caller(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<Caller*>(self)->owner);
  return 0;
}

void destroy_caller(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(reinterpret_cast<Caller*>(self)->owner);
  const auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Caller, call), Py_READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy_caller)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse_caller)},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"etx_runtime._native.Caller", sizeof(Caller), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

nb::object make_caller(nb::handle method, bool as_list, bool borrow) {
  static std::atomic<PyObject*> cached{nullptr};
  PyObject* type = cached.load(std::memory_order_acquire);
  if (type == nullptr) {
    type = PyType_FromSpec(&spec);
    if (type == nullptr) throw nb::python_error();
    PyObject* expected = nullptr;
    if (!cached.compare_exchange_strong(expected, type)) {
      Py_DECREF(type);
      type = expected;
    }
  }
  const auto allocate = reinterpret_cast<allocfunc>(
      PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type), Py_tp_alloc));
  PyObject* object = allocate(reinterpret_cast<PyTypeObject*>(type), 0);
  if (object == nullptr) throw nb::python_error();
  Caller& caller = *reinterpret_cast<Caller*>(object);
  caller.call = call;
  caller.owner = method.inc_ref().ptr();
  caller.method = nb::cast<PyMethod*>(method);
  caller.style = {as_list, borrow};
  return nb::steal(object);
}

}  // namespace python
}  // namespace etx
