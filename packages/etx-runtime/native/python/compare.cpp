// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <etx/compare.h>

#include "arrays.h"
#include "convert.h"
#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace etx {
namespace python {
namespace {

nb::object number(const double (&parts)[2], bool is_complex) {
  if (!is_complex) return nb::float_(parts[0]);
  return nb::steal(PyComplex_FromDoubles(parts[0], parts[1]));
}

/// The elements of an array, read as `type` where they are as wide.
Elements elements_of(nb::handle array, ScalarType type, ArrayView* view, Keep* keep) {
  const char* const reason = view_array(array, view, keep);
  if (reason != nullptr) raise("InputError", Error::InvalidArgument, reason);
  if (element_size(view->type) == element_size(type)) view->type = type;
  return {view->data, view->type, view->shape(), view->strides};
}

nb::object compare_arrays(nb::handle got, nb::handle expected, const std::string& dtype,
                          double atol, double rtol) {
  load_numpy();
  int type = 0;
  while (type < kNumScalarTypes && dtype != to_string(static_cast<ScalarType>(type))) ++type;
  ArrayView views[2];
  Keep keep;
  const Elements x = elements_of(got, static_cast<ScalarType>(type), &views[0], &keep);
  const Elements y = elements_of(expected, static_cast<ScalarType>(type), &views[1], &keep);
  Verdict verdict;
  {
    const GilReleased released;
    verdict = compare(x, y, Tolerance{atol, rtol});
  }
  nb::dict row;
  row["passed"] = verdict.passed;
  row["reason"] = verdict.reason == nullptr ? nb::none() : nb::object(nb::str(verdict.reason));
  row["different"] = verdict.different;
  row["worst"] = verdict.worst;
  if (!verdict.has_numbers) return row;
  const bool is_complex = x.type == ScalarType::ComplexHalf || x.type == ScalarType::ComplexFloat ||
                          x.type == ScalarType::ComplexDouble;
  row["max_absolute"] = verdict.max_absolute;
  row["max_relative"] = verdict.max_relative;
  row["got"] = number(verdict.got, is_complex);
  row["expected"] = number(verdict.expected, is_complex);
  return row;
}

}  // namespace

void bind_compare(nb::module_& m) {
  m.def("compare", compare_arrays, "got"_a, "expected"_a, "dtype"_a, "atol"_a, "rtol"_a,
        nb::sig("def compare(got: object, expected: object, dtype: str, atol: float, rtol: float) "
                "-> dict[str, typing.Any]"),
        "Judge an array, of bits where NumPy lacks `dtype`, as etx::compare does.");
}

}  // namespace python
}  // namespace etx
