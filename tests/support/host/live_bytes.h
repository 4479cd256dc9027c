// How much memory a test program's operator new has given out and not got back. A program that links live_bytes.cc has
// its own operators new and delete, which count. Thread-safe.
#pragma once

#include <cstddef>

std::size_t live_bytes();
