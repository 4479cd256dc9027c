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

  // A pin is a device ("cuda:1") or a type of them ("cuda"). kNotFound: there is none of this name, with the names that
  // there are. kUnavailable: it is lost, or all of that type are.
  Result<void> check_pin(std::string_view pinned) const;

  // Where a sample goes, and why not to a backend before that one; empty: it is the first that is asked.
  struct Chosen {
    std::size_t backend = 0;
    std::string passed_over;  // "cuda:0: the GPU decodes JPEG files alone"
  };

  // The backend for a sample: the first that can make it, or one of its type: these take turns.
  // `tried`: backends that gave it back (bit i: backend i). Errors as check_pin; else why each backend does not:
  // kUnsupported where one cannot, kUnavailable where all are lost or have tried.
  Result<Chosen> place(const SampleFacts& facts, const Recipe& recipe, std::string_view pinned, std::uint32_t tried);

 private:
  struct Known {
    Placeable is;
    std::optional<std::string> lost;
  };

  bool is_asked(const Known& backend, std::string_view pinned) const;
  Result<void> can_make(std::size_t i, const SampleFacts& facts, const Recipe& recipe, std::uint32_t tried) const;

  std::vector<Known> backends_;
  std::size_t turn_ = 0;
};

}  // namespace millrace
