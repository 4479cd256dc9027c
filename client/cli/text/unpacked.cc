#include "client/cli/text/unpacked.h"

#include <algorithm>
#include <array>

#include "client/cli/text/progress.h"

namespace millrace::cli {
namespace {

struct Reason {
  WhyUnpacked why;
  const char* name;  // in JSON
  const char* text;
};

constexpr std::array kReasons{
    Reason{WhyUnpacked::kNotJpeg, "not_jpeg", "only JPEG files have a packed form, and these are of other formats"},
    Reason{WhyUnpacked::kIsPacked, "packed_files", "these files are packed ones already"},
    Reason{WhyUnpacked::kSwitchedOff, "switched_off",
           "the daemon's settings say so: cache.packed is false, or cache.memory is 0"},
    Reason{WhyUnpacked::kNoRoom, "no_room", "the cache is full; cache.memory and cache.disk say how large it may be"},
    Reason{WhyUnpacked::kNoForm, "no_form",
           "JPEG files of a rare kind, damaged ones, or slower than limits.time_milliseconds"},
    Reason{WhyUnpacked::kNoProcess, "no_process", "no decoder process was there for them in time; warm once more"},
};

const Reason* reason_of(WhyUnpacked why) {
  const auto* const found = std::ranges::find(kReasons, why, &Reason::why);
  return found == kReasons.end() ? nullptr : found;
}

}  // namespace

std::string UnpackedCounts::text() const {
  std::string lines;
  for (const auto& [why, count] : counts_) {
    const Reason* const reason = reason_of(why);
    lines +=
        grouped(count) + " not packed: " +
        (reason == nullptr ? "the daemon is newer than this program, which does not know its reason" : reason->text) +
        "\n";
  }
  return lines;
}

void UnpackedCounts::add_to(Json& json) const {
  std::uint64_t other = 0;
  for (const auto& [why, count] : counts_) other += reason_of(why) == nullptr ? count : 0;
  json.key("not_packed").begin_object();
  for (const Reason& reason : kReasons) {
    const auto found = counts_.find(reason.why);
    json.member(reason.name, found == counts_.end() ? std::uint64_t{0} : found->second);
  }
  json.member("other", other).end_object();
}

}  // namespace millrace::cli
