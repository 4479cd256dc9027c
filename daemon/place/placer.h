// Stage 4: which backend makes which sample. Thread-bound(control).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/model/encoded_image.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// What placing needs to know of a backend; the pipeline keeps it up to date.
struct BackendState {
  std::string name;
  std::vector<ImageFormat> formats;
  bool lost = false;
  bool by_pin_only = false;  // the fake backend: never chosen unless named
};

class Placer {
 public:
  explicit Placer(std::vector<BackendState> backends) : backends_(std::move(backends)) {}

  // Whether that is news.
  bool set_lost(std::size_t backend) { return !std::exchange(backends_[backend].lost, true); }

  // kNotFound: no backend of the pinned name, with the names that there are. kUnavailable: it is lost, or none is left.
  Result<void> check_pin(std::string_view pinned) const;

  // The position of the backend for a sample. `tried`: backends that gave it back (bit i: backend i). Errors as
  // check_pin; kUnsupported when none takes the format.
  Result<std::size_t> place(const SourceInfo& source, std::string_view pinned, std::uint32_t tried) const;

 private:
  std::vector<BackendState> backends_;
};

}  // namespace millrace
