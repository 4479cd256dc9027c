// What the daemon may take of this host, in words: the table of budgets, and a limit for the service manager that goes
// with it. Functions, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "daemon/admit/resource.h"
#include "daemon/settings/settings.h"

namespace millrace {

// One line each resource, as TOML's comments: how much in all, of a user, of a session, and which settings say it.
std::string budget_table(const Budgets& budgets);

// What all of it adds up to with what the daemon takes itself, shared memory included.
// What is wrong if that is more than the host or the control group has; nullopt: it is not.
std::optional<std::string> too_much_memory(const Settings& settings);
Bytes most_memory(const Settings& settings);

// A systemd drop-in with that as its limit, each part explained.
std::string memory_drop_in(const Settings& settings);

}  // namespace millrace
