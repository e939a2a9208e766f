// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PLATFORM_OS_H_
#define ETX_NATIVE_PLATFORM_OS_H_

#include <cstddef>
#include <cstdint>
#include <string>

// What the hosted library asks of an operating system; one source file each.

namespace etx {
namespace os {

/// Maps a file for reading; false and a `message` on failure. An empty file has null data.
bool map_file(const std::string& path, void** data, size_t* size, std::string* message);
void unmap_file(void* data, size_t size);

/// Loads a shared library for the life of the process; null and a `message` on failure.
void* open_library(const std::string& path, std::string* message);
void* find_symbol(void* library, const char* name);

/// Cores that this process may run on; at least 1.
uint32_t cores();

/// Calls `child` in the child process after each fork; does nothing where there is no fork.
void on_fork(void (*child)());

}  // namespace os
}  // namespace etx

#endif  // ETX_NATIVE_PLATFORM_OS_H_
