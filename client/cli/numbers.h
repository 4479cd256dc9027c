// Checks of what options take: numbers in their range, never wrapped, and names. Values, immutable.
#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Validator;
}

namespace millrace::cli {

// "must be a whole number from 1 to 400, is -3".
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

// Finite.
CLI::Validator real_number(double least, double most);

// "4MiB" and "300000" alike become a number of bytes: at least one, at most what 64 bits hold.
CLI::Validator positive_size();

// A name or a path.
CLI::Validator not_empty();

}  // namespace millrace::cli
