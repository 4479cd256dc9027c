#include "client/cli/top/looks.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "proto/base/printable.h"
#include "proto/base/start_thread.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::milliseconds kPatienceWithDaemon{2'000};  // with a daemon that is slow
constexpr std::chrono::milliseconds kNap{50};                    // between looks at whether to stop

// Empty: there is none.
std::string name_of_user(std::uint32_t uid) {
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_name;
}

void sleep(std::chrono::milliseconds time, const std::stop_token& stop) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (auto now = std::chrono::steady_clock::now(); now < end && !stop.stop_requested();
       now = std::chrono::steady_clock::now())
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(end - now, kNap));
}

}  // namespace

Result<TopLook> TopLooker::look() {
  if (!client_) {
    MILLRACE_TRY(Client client, Client::connect(socket_, kPatienceWithDaemon));
    client_.emplace(std::move(client));
  }
  Result<TopLook> look = look_at(*client_);
  if (!look) client_.reset();  // the next one connects again
  return look;
}

Result<TopLook> TopLooker::look_at(Client& client) {
  TopLook look;
  MILLRACE_TRY(look.statistics, client.statistics(kPatienceWithDaemon));
  MILLRACE_TRY(look.devices, client.devices(kPatienceWithDaemon));
  Result<std::vector<SessionFindings>> findings = client.explain(0, false, kPatienceWithDaemon);
  if (findings)
    look.findings = *std::move(findings);
  else if (findings.error().code != Code::kUnsupported)
    return std::move(findings).error();
  look.users = users_of(look.statistics);
  look.at = std::chrono::steady_clock::now();
  return look;
}

std::map<std::uint32_t, std::string> TopLooker::users_of(const Statistics& statistics) {
  std::map<std::uint32_t, std::string> users;
  for (const SessionStatistics& session : statistics.sessions) {
    const auto known = users_.find(session.uid);
    const std::string name = known == users_.end() ? name_of_user(session.uid) : known->second;
    users[session.uid] = name.empty() ? std::to_string(session.uid) : name;
  }
  users_ = users;
  return users;
}

Result<std::unique_ptr<TopLooks>> TopLooks::start(std::string socket, std::chrono::milliseconds every) {
  std::unique_ptr<TopLooks> looks(new TopLooks(std::move(socket), every));
  MILLRACE_TRY(looks->thread_, start_thread("looks", [raw = looks.get()] { raw->go_on(raw->stop_.get_token()); }));
  return looks;
}

TopLooks::~TopLooks() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
}

TopLooks::Newest TopLooks::newest() {
  MutexLock lock(mutex_);
  return newest_;
}

void TopLooks::go_on(const std::stop_token& stop) {
  std::optional<TopLook> before;
  while (!stop.stop_requested()) {
    Result<TopLook> look = looker_.look();
    TopModel model = look ? top_model(*look, before) : TopModel{.gone = printable(look.error().message)};
    before = look ? std::optional(*std::move(look)) : std::nullopt;
    {
      MutexLock lock(mutex_);
      newest_ = {newest_.number + 1, std::move(model)};
    }
    sleep(every_, stop);
  }
}

}  // namespace millrace::cli
