// Images that the daemon keeps no packed form of, counted by the reason, and how people and programs are told. Values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/cli/text/json.h"
#include "millrace/client.h"

namespace millrace::cli {

// Of a batch's images after each other. kNotSaid, which is most of them, is not counted.
class UnpackedCounts {
 public:
  void add(WhyUnpacked why) {
    if (why != WhyUnpacked::kNotSaid) ++counts_[why];
  }

  // A line for each reason that there is, as "12 not packed: ...\n".
  std::string text() const;
  // An object with a member for each reason that this program knows, 0 included, and "other" for those that it does not.
  void add_to(Json& json) const;

 private:
  std::map<WhyUnpacked, std::uint64_t> counts_;
};

}  // namespace millrace::cli
