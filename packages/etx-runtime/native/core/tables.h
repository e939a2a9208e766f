// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_CORE_TABLES_H_
#define ETX_NATIVE_CORE_TABLES_H_

#include <cstddef>
#include <cstdint>

#define FLATBUFFERS_ASSERT(condition) static_cast<void>(0)
#include <flatbuffers/flatbuffers.h>

namespace etx {

/// True when the flatbuffer of `size` bytes at `data` can be read by its generated accessors: all
/// tables, vectors, strings and unions lie inside, aligned to their elements. `root` describes the
/// root table (flatc's --reflect-types). Linear: a buffer whose tables and vectors are shared so
/// often that a walk over all of them visits 16 times its bytes is refused. When false, `where` is
/// the offset of the table or field that is wrong.
bool verify_tables(const uint8_t* data, size_t size, const ::flatbuffers::TypeTable* root,
                   size_t* where);

}  // namespace etx

#endif  // ETX_NATIVE_CORE_TABLES_H_
