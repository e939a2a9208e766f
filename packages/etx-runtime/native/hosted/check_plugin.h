// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_NATIVE_HOSTED_CHECK_PLUGIN_H_
#define ETX_NATIVE_HOSTED_CHECK_PLUGIN_H_

#include <string>

#include <etx/abi.h>

namespace etx {

/// What is wrong with a plugin whose ABI fits, beginning with the member: `tables[0]->rows[2].run
/// is null`. Empty when all that the runtime reads is there.
std::string find_defect(const etx_plugin& plugin);

}  // namespace etx

#endif  // ETX_NATIVE_HOSTED_CHECK_PLUGIN_H_
