// Stage 4: which backend makes which sample. Thread-bound(control).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/backend/backend.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// What placing needs to know of a backend.
struct Placeable {
  std::string name;
  const Backend* backend = nullptr;  // asked whether it can; outlives the placer
  bool by_pin_only = false;          // never chosen unless named
};

class Placer {
 public:
  explicit Placer(std::vector<Placeable> backends);

  // A lost backend gets nothing, one that is ready again gets samples as before.
  void set_health(std::size_t backend, const Health& health);
  // Why it is lost; nullopt: it is ready.
  const std::optional<std::string>& lost(std::size_t backend) const { return backends_[backend].lost; }

  // kNotFound: no backend of the pinned name, with the names that there are. kUnavailable: it is lost.
  Result<void> check_pin(std::string_view pinned) const;

  // The position of the backend for a sample: the first that can make it. `tried`: backends that gave it back (bit i:
  // backend i). Errors as check_pin; else why each backend does not: kUnsupported where one cannot, kUnavailable where
  // all are lost or have tried.
  Result<std::size_t> place(const SampleFacts& facts, const Recipe& recipe, std::string_view pinned,
                            std::uint32_t tried) const;

 private:
  struct Known {
    Placeable is;
    std::optional<std::string> lost;
  };

  std::vector<Known> backends_;
};

}  // namespace millrace
