#include "daemon/place/placer.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

bool takes(const BackendState& backend, ImageFormat format) {
  return std::find(backend.formats.begin(), backend.formats.end(), format) != backend.formats.end();
}

}  // namespace

Result<void> Placer::check_pin(std::string_view pinned) const {
  if (pinned.empty()) return {};
  std::string names;
  for (const BackendState& backend : backends_) {
    if (backend.name == pinned && backend.lost)
      return Error{Code::kUnavailable,
                   "backend \"" + std::string(pinned) + "\" has lost its device; restart the daemon or pin another"};
    if (backend.name == pinned) return {};
    names += (names.empty() ? "" : ", ") + backend.name;
  }
  return Error{Code::kNotFound, "backend: there is no \"" + std::string(pinned) + "\" here; this daemon has " + names};
}

Result<std::size_t> Placer::place(const SourceInfo& source, std::string_view pinned, std::uint32_t tried) const {
  MILLRACE_TRY_VOID(check_pin(pinned));
  bool any_left = false;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    const BackendState& backend = backends_[i];
    const bool wanted = pinned.empty() ? !backend.by_pin_only : backend.name == pinned;
    if (!wanted || backend.lost || ((tried >> i) & 1U) != 0) continue;
    any_left = true;
    if (takes(backend, source.format)) return i;
  }
  if (any_left) return Error{Code::kUnsupported, "no backend here decodes this image format"};
  return Error{Code::kUnavailable,
               "no backend is left for this sample: every one that takes it has lost its device or gave it back"};
}

}  // namespace millrace
