// Colours with AVX-512, 64 pixels at a time, in bytes and 16-bit halves. Included by loops_avx512.h.
#pragma once

// Green weighs more than a signed half holds: half of it goes with red, half with blue.
MILLRACE_AUGMENT_INLINE __m512i luma_of(__m512i rg, __m512i bg) {
  const __m512i red_green = _mm512_set1_epi32(19595 | (19235 << 16)),
                blue_green = _mm512_set1_epi32(7471 | (19235 << 16));
  const __m512i sum = add_products(_mm512_set1_epi32(0x8000), rg, red_green);
  return _mm512_srli_epi32(add_products(sum, bg, blue_green), 16);
}

MILLRACE_AUGMENT_INLINE __m512i luma_of_halves(__m512i r, __m512i g, __m512i b) {
  return _mm512_packs_epi32(luma_of(_mm512_unpacklo_epi16(r, g), _mm512_unpacklo_epi16(b, g)),
                            luma_of(_mm512_unpackhi_epi16(r, g), _mm512_unpackhi_epi16(b, g)));
}

MILLRACE_AUGMENT_INLINE __m512i luma_of_bytes(__m512i r, __m512i g, __m512i b) {
  const Halves red = widened(r), green = widened(g), blue = widened(b);
  return packed({luma_of_halves(red.low, green.low, blue.low), luma_of_halves(red.high, green.high, blue.high)});
}

MILLRACE_AUGMENT_TARGET void grey_bytes(const Planes& planes, std::size_t padded) {
  for (std::size_t at = 0; at < padded; at += 64) {
    const __m512i l =
        luma_of_bytes(bytes_of(planes.plane[0] + at), bytes_of(planes.plane[1] + at), bytes_of(planes.plane[2] + at));
    for (Byte* const plane : planes.plane) _mm512_storeu_si512(plane + at, l);
  }
}

MILLRACE_AUGMENT_TARGET std::uint64_t sum_of_grey(const Planes& planes, std::size_t count) {
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t at = 0; at < count; at += 64) {
    const __mmask64 there = lowest(count - at);  // no grey of what is not
    const __m512i l = luma_of_bytes(_mm512_maskz_loadu_epi8(there, planes.plane[0] + at),
                                    _mm512_maskz_loadu_epi8(there, planes.plane[1] + at),
                                    _mm512_maskz_loadu_epi8(there, planes.plane[2] + at));
    sum = _mm512_add_epi64(sum, _mm512_sad_epu8(l, _mm512_setzero_si512()));
  }
  std::uint64_t sums[8], all = 0;
  _mm512_storeu_si512(sums, sum);
  for (const std::uint64_t each : sums) all += each;
  return all;
}

// The last result, of 1 to 255, that is 1 less; `from` is what a result is without the change.
template <class From>
MILLRACE_AUGMENT_INLINE Byte last_less(float change, From from) {
  int low = 0, high = 255;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (static_cast<int>(static_cast<float>(from(middle)) + change) < middle) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<Byte>(low);
}

// Those of a negative factor gain where others lose: they have no tables.
MILLRACE_AUGMENT_TARGET void prepare_tables(float factor, Blend& blend) {
  prepare(factor, blend);
  if (factor < 0) return;
  blend.has_tables = true;
  constexpr float kNear = 1.0F / 32768.0F;
  int above = 0, below = 0, whole_ones = 0;
  for (int i = 0; i < 256; ++i) {
    const float change = factor * static_cast<float>(i), limited = change < 256.0F ? change : 256.0F;
    const int whole = static_cast<int>(limited);
    const float rest = limited - static_cast<float>(whole);
    const int more = whole + (rest > 0.0F);
    blend.gain[i] = static_cast<Byte>(whole < 255 ? whole : 255);
    blend.loss[i] = static_cast<Byte>(more < 255 ? more : 255);
    whole_ones |= (rest == 0.0F) & (i > 0) & (change < 256.0F);
    above |= (rest > 0.0F) & (rest < kNear);
    below |= rest > 1.0F - kNear;
  }
  blend.has_whole = whole_ones != 0;
  blend.has_last_gained = below != 0;
  blend.has_last_lost = above != 0;
  if ((above | below) == 0) return;
  std::memset(blend.last_less_gained, 0, 256);
  std::memset(blend.last_less_lost, 0, 256);
  for (int i = 0; i < 256; ++i) {
    const float change = factor * static_cast<float>(i);
    if (!(change < 255.0F)) break;
    const int whole = static_cast<int>(change);
    const float rest = change - static_cast<float>(whole);
    if (rest > 1.0F - kNear) {
      const Byte last = last_less(change, [&](int result) { return result - whole - 1; });
      if (last == 255) continue;  // all of them are
      blend.gain[i] = static_cast<Byte>(whole + 1);
      blend.last_less_gained[i] = last;
    } else if (rest > 0.0F && rest < kNear) {
      blend.loss[i] = static_cast<Byte>(whole);
      blend.last_less_lost[i] = last_less(-change, [&](int result) { return result + whole; });
    }
  }
}

MILLRACE_AUGMENT_INLINE __m512i less_up_to(__m512i last, __mmask64 which, __m512i result) {
  return _mm512_mask_subs_epu8(result, _mm512_mask_cmple_epu8_mask(which, result, last), result, all_bytes(1));
}

// 64 values, from `degenerate`.
MILLRACE_AUGMENT_INLINE __m512i blended_bytes(const Blend& blend, __m512i degenerate, __m512i value) {
  const __m512i most = _mm512_max_epu8(degenerate, value);
  const __m512i distance = _mm512_sub_epi8(most, _mm512_min_epu8(degenerate, value));
  const __mmask64 loses = _mm512_cmplt_epu8_mask(value, degenerate);
  const Index in = index_of(distance);
  const __m512i change = look_up(blend.gain, in);
  const __m512i gained = _mm512_adds_epu8(degenerate, change);
  if (!blend.has_whole && !blend.has_last_gained && !blend.has_last_lost) {  // what is lost is always 1 more
    const __m512i result = _mm512_mask_subs_epu8(gained, loses, degenerate, change);
    return _mm512_mask_subs_epu8(result, loses, result, all_bytes(1));
  }
  __m512i result = _mm512_mask_subs_epu8(gained, loses, degenerate, look_up(blend.loss, in));
  if (blend.has_last_gained) result = less_up_to(look_up(blend.last_less_gained, in), ~loses, result);
  if (blend.has_last_lost) result = less_up_to(look_up(blend.last_less_lost, in), loses, result);
  return result;
}

MILLRACE_AUGMENT_TARGET void saturate_bytes(const Blend& blend, const Planes& planes, std::size_t padded) {
  if (!blend.has_tables) return saturate(blend, planes, padded);
  for (std::size_t at = 0; at < padded; at += 64) {
    __m512i in[3];
    for (int c = 0; c < 3; ++c) in[c] = bytes_of(planes.plane[c] + at);
    const __m512i l = luma_of_bytes(in[0], in[1], in[2]);
    for (int c = 0; c < 3; ++c) _mm512_storeu_si512(planes.plane[c] + at, blended_bytes(blend, l, in[c]));
  }
}

MILLRACE_AUGMENT_TARGET void blend_bytes(const Blend& blend, const Byte* in, std::size_t padded, Byte* out) {
  if (!blend.has_tables) return blend_planes(blend, in, padded, out);
  for (std::size_t at = 0; at < padded; at += 64) {
    _mm512_storeu_si512(out + at, blended_bytes(blend, bytes_of(out + at), bytes_of(in + at)));
  }
}
