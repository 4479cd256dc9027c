// How v++ is told which compute units an image has and where their memory is: its --config file. Values; thread-safe:
// plain functions.
#pragma once

#include <string>

#include "hls/table/kernel_table.h"

namespace millrace::card {

// REQUIRES: 1..kMostUnitsOfImage units.
std::string connectivity_text(const hls::Image& image, unsigned units);

}  // namespace millrace::card
