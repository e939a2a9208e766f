// SPDX-License-Identifier: BSD-3-Clause
#ifndef ETX_PORTABLE_SINE_SERIES_H_
#define ETX_PORTABLE_SINE_SERIES_H_

namespace etx::portable {

/// sin(r) / r = 1 + z series(z) of z = r^2 for |r| <= pi / 2: to 2^-34, and to 2^-60.
inline constexpr double kSineOfFloats[] = {-0.16666666638948474, 0.00833333142264535,
                                           -0.0001984089027676648, 2.752586113765928e-06,
                                           -2.3889270993711747e-08};
inline constexpr double kSineOfDoubles[] = {-0.16666666666666666,    0.00833333333333324,
                                            -0.00019841269841221597, 2.7557319212723035e-06,
                                            -2.5052106979063353e-08, 1.6058943470783327e-10,
                                            -7.643056021737644e-13,  2.7215644945691955e-15};

}  // namespace etx::portable

#endif  // ETX_PORTABLE_SINE_SERIES_H_
