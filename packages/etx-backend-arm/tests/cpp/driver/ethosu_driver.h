// SPDX-License-Identifier: BSD-3-Clause
/// The part of the driver's public interface that ethos_u/driver.cpp calls, to compile it here.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct ethosu_driver;
ethosu_driver* ethosu_reserve_driver(void);
void ethosu_release_driver(ethosu_driver* driver);
int ethosu_invoke_v3(ethosu_driver* driver, const void* custom_data_ptr, const int custom_data_size,
                     uint64_t* const base_addr, const size_t* base_addr_size,
                     const int num_base_addr, void* user_arg);
}
