// The daemon's figures for people: grouped, those that are 0 left out. Pure functions, thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "millrace/client.h"

namespace millrace::cli {

// A look, and the one before it for rates.
struct Look {
  Statistics statistics;
  std::chrono::steady_clock::time_point at;
};

enum class Figures { kNotZero, kAll };

// Headings and a line a figure, with its rate since `before`; beneath it one for each value by label. Of a histogram: how
// many, the median and the 99th percentile.
std::string figures_text(const Look& look, const std::optional<Look>& before, Figures figures);

// A line a session; empty when there is none. Beneath them where each one's time went, and in what its program waited:
// the largest shares.
std::string sessions_text(const std::vector<SessionStatistics>& sessions);

}  // namespace millrace::cli
