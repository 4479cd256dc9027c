// The transform on the command line: a preset and what deviates from it. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/recipe.h"

namespace millrace::cli {

class Command;

struct RecipeOptions {
  std::string preset = "train";
  std::uint32_t size = 224;
  std::optional<std::uint32_t> shorter_side;  // of evaluate; else size x 256 / 224
  std::optional<std::uint32_t> longest;       // of evaluate: the longer side's bound
  std::optional<Filter> filter;
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  std::optional<Channels> channels;
  std::optional<float> flip;
  bool ignore_orientation = false;
  std::vector<std::string> steps;  // as step_from_text() takes them
  std::optional<float> erase;      // probability
  std::vector<std::string>
      views;  // as views_from_text() takes them; then the preset and what deviates from it are none
};

void add_recipe_options(Command command, RecipeOptions& options);

// For the command's callback: reject()s an option that the chosen recipe does not have.
void require_fits(Command command, const RecipeOptions& options);

// REQUIRES: require_fits().
Recipe recipe_of(const RecipeOptions& options);

// The same with the first so many of its steps, and without erasing: what it is until then. REQUIRES: require_fits().
Recipe recipe_until(const RecipeOptions& options, std::size_t steps);

// "train 224: random resized crop, bilinear, flip 0.5, uint8 NCHW RGB".
std::string recipe_text(const RecipeOptions& options);

}  // namespace millrace::cli
