#include "daemon/backend/fpga/worker/sensors.h"

#include <algorithm>
#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <optional>
#include <sstream>

#include "daemon/backend/fpga/worker/xrt_calls.h"

namespace millrace::fpga {
namespace {

namespace pt = boost::property_tree;

std::optional<pt::ptree> parsed(const std::string& text) {
  std::istringstream in(text);
  pt::ptree tree;
  try {
    pt::read_json(in, tree);
  } catch (const pt::json_parser_error&) {
    return std::nullopt;
  }
  return tree;
}

}  // namespace

std::int32_t hottest_in(const std::string& thermal) {
  const auto tree = parsed(thermal);
  const auto places = tree ? tree->get_child_optional("thermals") : boost::none;
  if (!places) return 0;
  std::int32_t hottest = 0;
  for (const auto& [none, place] : *places) {
    if (place.get("is_present", "false") == "true") hottest = std::max(hottest, place.get("temp_C", 0));
  }
  return std::min(hottest, 1000);
}

std::int32_t milliwatts_in(const std::string& electrical) {
  const auto tree = parsed(electrical);
  const double watts = tree ? tree->get("power_consumption_watts", 0.0) : 0.0;
  return watts > 0 && watts < 10'000 ? static_cast<std::int32_t>(watts * 1000) : 0;
}

Sensors read_sensors(const xrt::device& device) {
  const auto thermal =
      xrt_call("asking for temperatures", [&] { return device.get_info<xrt::info::device::thermal>(); });
  const auto electrical =
      xrt_call("asking for power", [&] { return device.get_info<xrt::info::device::electrical>(); });
  return {.celsius = thermal ? hottest_in(*thermal) : 0, .milliwatts = electrical ? milliwatts_in(*electrical) : 0};
}

}  // namespace millrace::fpga
