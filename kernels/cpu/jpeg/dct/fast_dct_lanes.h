// The inverse DCT of `fast` (fast_dct.h) over 128-bit lanes, a block a lane; included after inverse_dct_lanes.h, by a
// file that has also defined
//   subs16, times16 (rounded, 2^-15), shift_right16<bits>, set16, first16 (a word in each lane's first place)
#pragma once

// One pass down the columns of v[0..7].
MILLRACE_JPEG_INLINE void transform_fast_columns(Vec v[8]) {
  const Vec sum04 = adds16(v[0], v[4]), difference04 = subs16(v[0], v[4]);
  const Vec sum26 = adds16(v[2], v[6]), difference26 = subs16(v[2], v[6]);
  const Vec turned = subs16(adds16(difference26, times16(difference26, kHalfOctave)), sum26);
  const Vec even[4] = {adds16(sum04, sum26), adds16(difference04, turned), subs16(difference04, turned),
                       subs16(sum04, sum26)};

  const Vec sum53 = adds16(v[5], v[3]), difference53 = subs16(v[5], v[3]);
  const Vec sum17 = adds16(v[1], v[7]), difference17 = subs16(v[1], v[7]);
  const Vec both = adds16(difference53, difference17), z5 = adds16(both, times16(both, kOddFactors[0]));
  const Vec across = subs16(sum17, sum53);
  const Vec far = adds16(adds16(difference53, difference53), times16(difference53, kOddFactors[2]));
  const Vec near = subs16(adds16(difference17, times16(difference17, kOddFactors[1])), z5);
  const Vec odd0 = adds16(sum17, sum53), odd1 = subs16(subs16(z5, far), odd0);
  const Vec odd2 = subs16(adds16(across, times16(across, kHalfOctave)), odd1), odd3 = adds16(odd2, near);
  v[0] = adds16(even[0], odd0);
  v[7] = subs16(even[0], odd0);
  v[1] = adds16(even[1], odd1);
  v[6] = subs16(even[1], odd1);
  v[2] = adds16(even[2], odd2);
  v[5] = subs16(even[2], odd2);
  v[4] = adds16(even[3], odd3);
  v[3] = subs16(even[3], odd3);
}

// Columns of scaled coefficients to rows of samples, two rows a vector.
MILLRACE_JPEG_INLINE void transform_fast_lanes(Vec v[8], Vec out[4]) {
  v[0] = adds16(v[0], first16(kFastMiddle));
  transform_fast_columns(v);
  transpose(v);
  transform_fast_columns(v);
  for (int i = 0; i < 4; ++i)
    out[i] = pack_u8(shift_right16<kFastShift>(v[2 * i]), shift_right16<kFastShift>(v[2 * i + 1]));
}
