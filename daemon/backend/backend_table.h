// The families of backends that this build has: the one visible list.
#pragma once

#include <span>
#include <vector>

#include "daemon/backend/backend_row.h"

namespace millrace {

// In the order in which they are asked to take a sample.
std::span<const BackendRow> backend_table();

// What all rows bring to the settings, and that one of them has to be wanted.
std::vector<SettingsPart> backend_settings();

}  // namespace millrace
