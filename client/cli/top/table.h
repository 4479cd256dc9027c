// The table of sessions of `millrace top`, in any width: columns that do not fit are left out, the least important ones
// first. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "client/cli/top/view.h"

namespace millrace::cli {

struct TopTable {
  std::string heading;
  std::vector<std::string> rows;  // one a session, in the order given
};

TopTable top_table(const std::vector<const TopSession*>& sessions, const TopView& view, std::size_t width);

// "41 %"; "-": not told.
std::string share_text(std::optional<double> share);
// "1,234", and below 10 "3.4".
std::string images_text(double images_per_second);

}  // namespace millrace::cli
