#include "client/cli/text/admin_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "client/cli/text/progress.h"
#include "proto/base/bytes.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Changes = google::protobuf::RepeatedPtrField<v1::SettingChange>;
using Uses = google::protobuf::RepeatedPtrField<v1::ResourceUse>;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string changes_text(const Changes& changes) {
  std::size_t width = 0;
  for (const v1::SettingChange& change : changes) width = std::max(width, change.name().size());
  std::string text;
  for (const v1::SettingChange& change : changes)
    text += "  " + padded(printable(change.name()), width) + "  " + printable(change.in_force()) + " -> " +
            printable(change.in_file()) + '\n';
  return text;
}

std::string counted(int number, const std::string& what) {
  return grouped(static_cast<std::uint64_t>(number)) + ' ' + what + (number == 1 ? "" : "s");
}

std::string amount(std::uint64_t number, bool bytes) {
  return bytes ? to_text(Bytes{number}) : grouped(number);
}

std::string use_text(const v1::ResourceUse& use) {
  const std::string of = use.bound() > 0 ? " of " + amount(use.bound(), use.bytes()) : "";
  return "  " + padded(printable(use.name()), 36) + "  " + amount(use.in_use(), use.bytes()) + of + '\n';
}

std::string file_text(const v1::AdminStatusReply& reply) {
  if (reply.settings_file().empty()) return "settings: no file, but what the daemon was started with\n";
  std::string text = "settings: " + printable(reply.settings_file());
  if (reply.complaints_size() > 0) {
    text += ", which could not be taken now:\n";
    for (const std::string& line : reply.complaints()) text += "  " + printable(line) + '\n';
    return text;
  }
  if (reply.reloadable().empty() && reply.at_start().empty()) return text + ", all in force\n";
  text += '\n';
  if (!reply.reloadable().empty())
    text += "not in force until `millrace admin reload`:\n" + changes_text(reply.reloadable());
  if (!reply.at_start().empty())
    text += "not in force until the daemon is restarted:\n" + changes_text(reply.at_start());
  return text;
}

std::string sessions_of(const v1::AdminStatusReply& reply, std::uint32_t uid) {
  std::string text;
  for (const v1::SessionStatistics& session : reply.sessions()) {
    if (session.uid() != uid) continue;
    text += "  session " + std::to_string(session.session_id()) + ", pid " + std::to_string(session.pid());
    if (!session.name().empty()) text += ", \"" + printable(session.name()) + '"';
    text += ": " + to_text(Bytes{session.segment_bytes()}) + ", " + grouped(session.batches()) + " batches, " +
            grouped(session.samples()) + " images, " + grouped(session.bad_samples()) + " bad, " +
            std::to_string(std::lround(session.lane_seconds())) + " s of lanes\n";
  }
  return text;
}

}  // namespace

std::string reload_text(const v1::ReloadReply& reply) {
  std::string text = printable(reply.file()) + ": " + counted(reply.changed_size(), "setting") +
                     " changed and in force, " + grouped(static_cast<std::uint64_t>(reply.at_start_size())) +
                     " from the next start on, " + grouped(reply.unchanged()) + " as before\n";
  if (reply.changed_size() > 0) text += "in force now:\n" + changes_text(reply.changed());
  if (reply.at_start_size() > 0) text += "not before the daemon is restarted:\n" + changes_text(reply.at_start());
  for (const std::string& remark : reply.remarks()) text += "warning: " + printable(remark) + '\n';
  return text;
}

std::string status_text(const v1::AdminStatusReply& reply) {
  const std::chrono::seconds up(static_cast<std::int64_t>(reply.uptime_seconds()));
  std::string text = "millraced " + printable(reply.daemon_version()) + ", pid " + std::to_string(reply.pid()) +
                     ", up " + clock_text(up) + ": ";
  text += !reply.draining() ? "serving"
          : reply.stops()   ? "draining, and stops then"
                            : "draining, until `millrace admin resume`";
  text += "; " + grouped(reply.batches()) + " batches under way\n" + file_text(reply) + "all together:\n";
  for (const v1::ResourceUse& use : reply.in_use()) text += use_text(use);
  for (const v1::UserUse& user : reply.users()) {
    text += "user " + std::to_string(user.uid()) + ":\n";
    for (const v1::ResourceUse& use : user.holds()) text += use_text(use);
    text += sessions_of(reply, user.uid());
  }
  return text;
}

}  // namespace millrace::cli
