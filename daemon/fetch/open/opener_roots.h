// Paths beneath several roots, asked of the opener: in messages for one root each, because each root may hang by itself.
// What the answers say of a root, it hears. Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/fetch/open/opener_link.h"
#include "daemon/fetch/open/root_folder.h"

namespace millrace {

class OpenerRoots {
 public:
  explicit OpenerRoots(OpenerLink::Options options) : link_(std::move(options)) {}

  bool serves() { return link_.serves(); }
  Result<void> read_settings() { return link_.read_settings(); }

  // What became of each path; those that none of `roots` holds, or that are no paths, are answered here.
  std::vector<OpenerLink::Opened> ask(std::span<const std::string_view> paths_untrusted, OpenerWhat what,
                                      const Caller& caller, const RootList& roots);

 private:
  struct Asked {
    std::string_view name;
    std::size_t at;  // in the answers
  };

  static std::vector<std::vector<Asked>> by_root(std::span<const std::string_view> paths, const RootList& roots,
                                                 std::vector<OpenerLink::Opened>& opened);
  void ask_one(RootFolder& root, std::span<const Asked> asked, OpenerWhat what, const Caller& caller,
               std::vector<OpenerLink::Opened>& opened);

  OpenerLink link_;
};

}  // namespace millrace
