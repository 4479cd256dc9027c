#include "daemon/serve/sessions/shared_listings.h"

#include <algorithm>
#include <utility>

namespace millrace {

std::shared_ptr<const Dataset> SharedListings::keep(std::shared_ptr<const Dataset> listed, Charge room, UserId user) {
  for (std::shared_ptr<const Dataset>& other : alike(listed->fingerprint())) {
    if (*other != *listed) continue;
    listed = std::move(other);
    break;
  }
  room.shrink_to(std::min(room.amount(), listed->memory().count));
  MutexLock lock(mutex_);
  std::weak_ptr<const Held>& of_user = known(listed).users[user];
  std::shared_ptr<const Held> held = of_user.lock();
  if (!held) of_user = held = std::make_shared<const Held>(Held{std::move(listed), std::move(room)});
  return {held, held->listing.get()};
}

std::vector<std::shared_ptr<const Dataset>> SharedListings::alike(std::uint64_t fingerprint) {
  MutexLock lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.listing.expired(); });
  std::vector<std::shared_ptr<const Dataset>> found;
  const auto [first, last] = known_.equal_range(fingerprint);
  for (auto entry = first; entry != last; ++entry) {
    if (std::shared_ptr<const Dataset> listing = entry->second.listing.lock()) found.push_back(std::move(listing));
  }
  return found;
}

SharedListings::Known& SharedListings::known(const std::shared_ptr<const Dataset>& listing) {
  const auto [first, last] = known_.equal_range(listing->fingerprint());
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second.listing.lock() == listing; });
  return found != last ? found->second : known_.emplace(listing->fingerprint(), Known{listing, {}})->second;
}

}  // namespace millrace
