#include "daemon/place/placer.h"

#include <algorithm>
#include <array>

namespace millrace {
namespace {

constexpr std::size_t kMostBackends = 32;  // bits of `tried`

// "cuda" of "cuda:0".
std::string_view type_of(std::string_view name) {
  return name.substr(0, name.find(':'));
}

}  // namespace

Placer::Placer(std::vector<Placeable> backends) {
  for (Placeable& backend : backends) backends_.push_back({std::move(backend), std::nullopt});
}

void Placer::set_health(std::size_t backend, const Health& health) {
  if (health.state == Health::State::kLost) {
    backends_[backend].lost = health.why;
  } else {
    backends_[backend].lost.reset();
  }
}

Result<void> Placer::check_pin(std::string_view pinned) const {
  if (pinned.empty()) return {};
  std::string names;
  const Known* lost = nullptr;
  for (const Known& backend : backends_) {
    if (is_asked(backend, pinned) && !backend.lost) return {};
    if (is_asked(backend, pinned)) lost = &backend;
    names += (names.empty() ? "" : ", ") + backend.is.name;
  }
  if (lost != nullptr)
    return Error{Code::kUnavailable, "backend \"" + std::string(pinned) + "\" has lost its device (" + *lost->lost +
                                         "); wait until it is back, or pin another"};
  return Error{Code::kNotFound, "backend: there is no \"" + std::string(pinned) + "\" here; this daemon has " + names};
}

bool Placer::is_asked(const Known& backend, std::string_view pinned) const {
  if (pinned.empty()) return !backend.is.by_pin_only;
  return backend.is.name == pinned || type_of(backend.is.name) == pinned;
}

Result<void> Placer::can_make(std::size_t i, const SampleFacts& facts, const Recipe& recipe,
                              std::uint32_t tried) const {
  const Known& backend = backends_[i];
  if (backend.lost) return Error{Code::kUnavailable, "it has lost its device (" + *backend.lost + ")"};
  if ((tried >> i & 1U) != 0) return Error{Code::kUnavailable, "it gave it back"};
  return backend.is.backend->can_make(facts, recipe);
}

Result<Placer::Chosen> Placer::place(const SampleFacts& facts, const Recipe& recipe, std::string_view pinned,
                                     std::uint32_t tried) {
  MILLRACE_TRY_VOID(check_pin(pinned));
  Code code = Code::kUnavailable;
  std::string reasons;
  std::array<std::size_t, kMostBackends> alike;  // of one type
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(backends_.size(), kMostBackends); ++i) {
    const Known& backend = backends_[i];
    if (!is_asked(backend, pinned)) continue;
    if (count != 0 && type_of(backends_[alike[0]].is.name) != type_of(backend.is.name)) continue;
    const Result<void> can = can_make(i, facts, recipe, tried);
    if (can) {
      alike[count++] = i;
    } else {
      if (can.error().code != Code::kUnavailable) code = Code::kUnsupported;
      reasons += (reasons.empty() ? "" : "; ") + backend.is.name + ": " + can.error().message;
    }
  }
  if (count != 0) return Chosen{alike[turn_++ % count], std::move(reasons)};
  if (!pinned.empty())
    return Error{code,
                 "the request is pinned to " + std::string(pinned) + ", which does not make this sample: " + reasons};
  return Error{code, "no backend here makes this sample: " + reasons};
}

}  // namespace millrace
