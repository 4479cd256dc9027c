// Random baseline JPEG streams, and damage to them. The same for the same seed.
// Thread-safe: plain functions.
#pragma once

#include <random>

#include "tests/support/jpeg/jpeg_stream.h"

namespace millrace {

// What a drawn stream may be. Whatever is left open is drawn.
struct JpegDraw {
  // kPlain: what our own decoder takes, so grey or YCbCr with chroma at full or half size; kAny: up to four components,
  // any factors whose blocks an MCU can hold, fill bytes.
  enum class Kind { kPlain, kAny };
  // kOrdinary: coefficients as 8-bit samples have them; kWild: any that can be coded.
  enum class Range { kOrdinary, kWild };
  Kind kind = Kind::kPlain;
  Range range = Range::kOrdinary;
  int width = 0, height = 0;  // 0: small
  int h = 0, v = 0;           // of the first component; the others' are 1. 0: any
  int components = 0;         // 0: any
  // Per mille of the coefficients that are not zero; -1: any, from none to all.
  int density = -1;
  int restart_interval = -1;  // MCUs; 0: none; -1: any, which mostly is none
};

JpegStream draw_jpeg(const JpegDraw& draw, std::mt19937& random);

enum class JpegDamage {
  kCut,           // without an end
  kCutWithEnd,    // EOI behind the cut
  kFlip,          // a few bits of the scan
  kFlipAnywhere,  // of the header, too
  kRestart,       // a restart marker where none belongs
  kExtra,         // bytes before EOI
  kLack,          // some bytes of the scan removed
  kOverwrite,     // some bytes of the scan all 0xFF, all 0, or another part of it
};
inline constexpr int kJpegDamages = 8;

std::vector<std::byte> damage(const JpegFile& file, JpegDamage kind, std::mt19937& random);

}  // namespace millrace
