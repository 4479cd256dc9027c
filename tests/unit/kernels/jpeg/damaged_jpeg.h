// JPEG files to damage, and damage of every kind, drawn: what decoders on devices are held against the CPU with. Pure
// functions of the random numbers.
#pragma once

#include <random>

#include "tests/support/jpeg/restart_damage.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {

bool one_in(std::mt19937& random, int count);

// Where a file's only scan has its data.
JpegFile located(File bytes);

// A picture as an encoder writes it, or a stream of any coefficients.
JpegFile draw_file(std::mt19937& random);

// Damaged in one way or in two; now and then in none.
File draw_damage(const JpegFile& file, std::mt19937& random);

}  // namespace millrace
