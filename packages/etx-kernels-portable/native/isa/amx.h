// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_AMX_H_
#define ETX_PORTABLE_AMX_H_

namespace etx::portable {

/// The processor multiplies tiles of int8 and bfloat16 (AMX), and the system lets this process do
/// it: it is asked the first time.
bool has_amx();

}  // namespace etx::portable

#endif  // ETX_PORTABLE_AMX_H_
