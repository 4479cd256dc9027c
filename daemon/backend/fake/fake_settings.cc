#include "daemon/backend/fake/fake_settings.h"

#include "daemon/backend/fake/fake_options.h"

namespace millrace {
namespace {

const Key kKeys[] = {
    {"backends.fake", place(in_group<&FakeSettings::options>),
     "For tests of the daemon: a backend that pretends, for example \"delay_us=500,fail_every=7\". Empty: none."},
};

std::vector<Complaint> complaints(const Settings& settings) {
  const Result<FakeOptions> options = FakeOptions::parse(settings.groups.of<FakeSettings>().options);
  if (options) return {};
  return {{"backends.fake", options.error().message}};
}

}  // namespace

SettingsPart fake_settings() {
  return {.keys = kKeys, .complaints = complaints};
}

}  // namespace millrace
