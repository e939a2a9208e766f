// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_PLATFORM_OS_H_
#define ETX_NATIVE_PLATFORM_OS_H_

#include <cstddef>
#include <cstdint>
#include <string>

// What the hosted library asks of an operating system; one source file each.

namespace etx {
namespace os {

/// Opens a regular file for reading; false and a `message` on failure, `*file` may be open then.
bool open_file(const std::string& path, int* file, uint64_t* size, std::string* message);
/// The same for a file that the caller has open and keeps.
bool copy_file(int descriptor, int* file, uint64_t* size, std::string* message);
/// All of `size` bytes from `offset`; false when the file has fewer or cannot be read.
bool read_file(int file, uint64_t offset, void* data, size_t size);
void close_file(int file);

/// Maps `size` bytes from `offset`, a multiple of map_granularity(), for reading; they outlive the
/// file. False and a `message` on failure. Without bytes `*data` is null.
bool map_file(int file, uint64_t offset, size_t size, void** data, std::string* message);
void unmap_file(void* data, size_t size);
uint64_t map_granularity();

/// Loads a shared library for the life of the process; null and a `message` on failure.
void* open_library(const std::string& path, std::string* message);
void* find_symbol(void* library, const char* name);

/// A monotonic clock.
uint64_t nanoseconds();

/// Cores that this process may run on; at least 1.
uint32_t cores();

/// Calls `child` in the child process after each fork; does nothing where there is no fork.
void on_fork(void (*child)());

}  // namespace os
}  // namespace etx

#endif  // ETX_NATIVE_PLATFORM_OS_H_
