#include "daemon/place/placer.h"

namespace millrace {

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
  for (const Known& backend : backends_) {
    if (backend.is.name == pinned && backend.lost)
      return Error{Code::kUnavailable, "backend \"" + std::string(pinned) + "\" has lost its device (" + *backend.lost +
                                           "); restart the daemon or pin another"};
    if (backend.is.name == pinned) return {};
    names += (names.empty() ? "" : ", ") + backend.is.name;
  }
  return Error{Code::kNotFound, "backend: there is no \"" + std::string(pinned) + "\" here; this daemon has " + names};
}

Result<std::size_t> Placer::place(const SampleFacts& facts, const Recipe& recipe, std::string_view pinned,
                                  std::uint32_t tried) const {
  MILLRACE_TRY_VOID(check_pin(pinned));
  Code code = Code::kUnavailable;
  std::string reasons;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    const Known& backend = backends_[i];
    if (pinned.empty() ? backend.is.by_pin_only : backend.is.name != pinned) continue;
    std::string why;
    if (backend.lost) {
      why = "it has lost its device (" + *backend.lost + ")";
    } else if ((tried >> i & 1U) != 0) {
      why = "it gave it back";
    } else {
      const Result<void> can = backend.is.backend->can_make(facts, recipe);
      if (can) return i;
      code = Code::kUnsupported;
      why = can.error().message;
    }
    reasons += (reasons.empty() ? "" : "; ") + backend.is.name + ": " + why;
  }
  return Error{code, "no backend here makes this sample: " + reasons};
}

}  // namespace millrace
