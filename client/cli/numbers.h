// Checks of what options take: numbers in their range, never wrapped, names, and endings of file names. Values,
// immutable.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace millrace::cli {

// "must be a whole number from 1 to 400, is -3".
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

// Finite.
CLI::Validator real_number(double least, double most);

// "4MiB" and "300000" alike become a number of bytes: at least one, at most what 64 bits hold.
CLI::Validator positive_size();

// A name or a path.
CLI::Validator not_empty();

// ".JPEG", "JPG" and "jpg" alike become what the daemon compares with: lower case, without the dot. "*" stays: every
// file.
CLI::Validator file_ending();

// For a command's callback. Throws CLI::ValidationError when "*" is among `endings` of --extension and not alone.
void require_agree(const std::vector<std::string>& endings);

}  // namespace millrace::cli
