// millrace devices: what the daemon can put to work.
#include <cstdio>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/options.h"
#include "client/cli/text/json.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct DevicesOptions {
  ConnectionOptions connection;
  bool json = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + printable(word);
  return text;
}

void print_devices_json(const std::vector<Device>& devices) {
  Json json;
  json.begin_array();
  for (const Device& device : devices) {
    json.begin_object().member("backend", device.backend).member("name", device.name).member("ready", device.ready);
    json.member("lanes", std::uint64_t{device.lanes}).key("formats").begin_array();
    for (const std::string& format : device.formats) json.value(format);
    json.end_array().member("detail", device.detail).key("properties").begin_object();
    for (const DeviceProperty& property : device.properties) json.member(property.name, property.value);
    json.end_object().end_object();
  }
  std::printf("%s\n", json.end_array().text().c_str());
}

void print_devices(const std::vector<Device>& devices) {
  std::printf("%-8s %-6s %5s  %-18s %s\n", "BACKEND", "STATE", "LANES", "FORMATS", "NAME");
  for (const Device& device : devices) {
    std::printf("%-8s %-6s %5u  %-18s %s\n", printable(device.backend).c_str(), device.ready ? "ready" : "lost",
                device.lanes, joined(device.formats).c_str(), printable(device.name).c_str());
    if (!device.detail.empty()) std::printf("%*s%s\n", 42, "", printable(device.detail).c_str());
    for (const DeviceProperty& property : device.properties)
      std::printf("%*s%s: %s\n", 42, "", printable(property.name).c_str(), printable(property.value).c_str());
  }
}

int devices(const DevicesOptions& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  const auto list = connection->client.devices();
  if (!list) return report(list.error());
  options.json ? print_devices_json(*list) : print_devices(*list);
  return kFine;
}

}  // namespace

void add_devices(Command app, Chosen& chosen) {
  auto options = std::make_shared<DevicesOptions>();  // shared with the callback
  const Command command = app.subcommand("devices", "What can the daemon put to work?");
  command.flag("--json", options->json, "print a JSON array");
  add_connection_options(command, options->connection);
  command.footer(
      "Examples:\n  millrace devices\n  millrace devices --private     what this machine offers, without a running "
      "service");
  command.callback([options, &chosen] { chosen = [options] { return devices(*options); }; });
}

}  // namespace millrace::cli
