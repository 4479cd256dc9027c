#include "daemon/fetch/open/opener_roots.h"

#include <algorithm>
#include <string>

#include "daemon/fetch/open/refusals.h"

namespace millrace {

std::vector<OpenerLink::Opened> OpenerRoots::ask(std::span<const std::string_view> paths_untrusted, OpenerWhat what,
                                                 const Caller& caller, const RootList& roots) {
  std::vector<OpenerLink::Opened> opened(paths_untrusted.size());
  const std::vector<std::vector<Asked>> asked = by_root(paths_untrusted, roots, opened);
  for (std::size_t root = 0; root < asked.size(); ++root) {
    std::span<const Asked> left = asked[root];
    while (!left.empty()) {
      const auto some = left.first(std::min<std::size_t>(left.size(), shm::kOpenerMostNames));
      ask_one(*roots[root], some, what, caller, opened);
      left = left.subspan(some.size());
    }
  }
  return opened;
}

// A path in several roots goes with the first of them.
std::vector<std::vector<OpenerRoots::Asked>> OpenerRoots::by_root(std::span<const std::string_view> paths,
                                                                  const RootList& roots,
                                                                  std::vector<OpenerLink::Opened>& opened) {
  std::vector<std::vector<Asked>> asked(roots.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto root =
        std::find_if(roots.begin(), roots.end(), [&](const auto& one) { return one->name_in(paths[i]).has_value(); });
    if (paths[i].size() > shm::kOpenerLongestName) {
      opened[i].answer.error = Error{Code::kInvalid, "a path has at most " + std::to_string(shm::kOpenerLongestName) +
                                                         " bytes, not " + std::to_string(paths[i].size())};
    } else if (root == roots.end() || !is_clean(paths[i])) {
      opened[i].answer.error = not_readable();
    } else {
      asked[static_cast<std::size_t>(root - roots.begin())].push_back({paths[i], i});
    }
  }
  return asked;
}

void OpenerRoots::ask_one(RootFolder& root, std::span<const Asked> asked, OpenerWhat what, const Caller& caller,
                          std::vector<OpenerLink::Opened>& opened) {
  std::vector<std::string_view> names;
  for (const Asked& one : asked) names.push_back(one.name);
  std::vector<OpenerLink::Opened> answers = link_.open(root.configured(), names, what, caller);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const OpenAnswer& answer = answers[i].answer;
    const bool heard = !answer.error || answer.error->code == Code::kNotFound;
    if (heard) root.heard(!answer.root_missing);
    opened[asked[i].at] = std::move(answers[i]);
  }
}

}  // namespace millrace
