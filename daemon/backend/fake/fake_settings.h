// What the administrator decides about the fake backend: the key backends.fake. Value.
#pragma once

#include <string>

#include "daemon/settings/keys.h"

namespace millrace {

struct FakeSettings {
  std::string options;  // as FakeOptions::parse() reads them; empty: there is none
};

SettingsPart fake_settings();

}  // namespace millrace
