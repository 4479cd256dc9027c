#include "daemon/process/operation.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <sstream>
#include <utility>

#include "daemon/model/stopping.h"
#include "daemon/observe/log.h"
#include "daemon/process/parts.h"
#include "proto/base/printable.h"
#include "proto/base/start_thread.h"

namespace millrace {
namespace {

// A client that waits for a drain hears of its end within a tenth of a second. A connection that ends while its client
// still writes to it (an acknowledgement of gRPC's is enough) takes with it what the client has not read.
constexpr std::chrono::milliseconds kUntilTold{300};

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMostWaiting = 16;  // calls

Error being_read() {
  return Error{Code::kExhausted, "the settings are being read again and again already: try later"};
}

std::vector<std::string> lines_of(const Error& error) {
  std::vector<std::string> lines;
  std::istringstream text(error.message);
  for (std::string line; std::getline(text, line);) lines.push_back(std::move(line));
  return lines;
}

std::string times(std::size_t count, std::string_view what) {
  return std::to_string(count) + ' ' + std::string(what) + (count == 1 ? "" : "s");
}

void log_changes(const std::string& who, const std::string& file, const SettingChanges& changes) {
  log_always(who + " has " + printable(file) + " read again: " + times(changes.live.size(), "setting") +
             " changed and in force, " + std::to_string(changes.at_start.size()) + " from the next start on, " +
             std::to_string(changes.unchanged) + " as before");
  for (const SettingChange& change : changes.live)
    log_always("setting " + change.name + " is " + printable(change.now) + " now, was " + printable(change.before));
  for (const SettingChange& change : changes.at_start)
    log_always("setting " + change.name + " stays " + printable(change.before) +
               " until the daemon is restarted; the file says " + printable(change.now));
}

}  // namespace

Operation::Operation(boost::asio::io_context& control, CommandLine line, const UnmappedIds& unmapped,
                     Settings& in_force, Lifetime& lifetime, const LiveParts& parts)
    : control_(control),
      line_(std::move(line)),
      unmapped_(unmapped),
      in_force_(in_force),
      lifetime_(lifetime),
      parts_(parts) {}

Operation::~Operation() {
  if (reader_.joinable()) reader_.join();
}

// ---- settings ----

void Operation::reload(const std::string& who, std::function<void(Result<FileReading>)> done) {
  if (line_.config.empty())
    return done(Error{Code::kPrecondition, "the daemon was started without --config: there is no file to read again"});
  if (waiting_.size() >= kMostWaiting) return done(being_read());
  waiting_.push_back([this, who, done = std::move(done)]() mutable {
    read(Then::kPutInForce, [this, who, done = std::move(done)](WasRead was) { done(take(who, std::move(was))); });
  });
  read_next();
}

void Operation::compare(std::function<void(Result<FileReading>)> done) {
  if (line_.config.empty()) return done(Error{Code::kPrecondition, "the daemon was started without --config"});
  if (waiting_.size() >= kMostWaiting) return done(being_read());
  waiting_.push_back([this, done = std::move(done)]() mutable {
    read(Then::kCompare, [this, done = std::move(done)](const WasRead& was) {
      if (!was.settings) return done(FileReading{.complaints = lines_of(was.settings.error()), .changes = {}});
      done(FileReading{.complaints = {}, .changes = changes(in_force_, *was.settings, every_key())});
    });
  });
  read_next();
}

// One after the other, so that each compares with what the one before has put in force.
void Operation::read_next() {
  if (reader_.joinable() || waiting_.empty()) return;
  const std::function<void()> begin = std::move(waiting_.front());
  waiting_.pop_front();
  begin();
}

// On a thread of its own: names of users may be asked of a directory service, roots may lie on a server.
void Operation::read(Then then, std::function<void(WasRead)> done) {
  Result<std::thread> reader = start_thread("mr-settings", [this, then, in_force = in_force_, done] {
    auto was = std::make_shared<WasRead>(read_file(then, in_force));  // shared: the event loop copies what it calls
    boost::asio::post(control_, [this, was = std::move(was), done] {
      reader_.join();
      done(std::move(*was));
      read_next();
    });
  });
  if (reader) {
    reader_ = *std::move(reader);
    return;
  }
  boost::asio::post(control_, [this, why = reader.error(), done = std::move(done)] {
    done(WasRead{.settings = why, .prepared = std::optional<PreparedSettings>()});
    read_next();
  });
}

Operation::WasRead Operation::read_file(Then then, const Settings& in_force) const {
  WasRead was{.settings = settings_of(line_, unmapped_), .prepared = std::optional<PreparedSettings>()};
  if (!was.settings || then == Then::kCompare) return was;
  Result<PreparedSettings> prepared =
      prepare(with_live(in_force, *was.settings, every_key()), own_ids(unmapped_), parts_.fetcher);
  was.prepared = prepared ? Prepared(*std::move(prepared)) : Prepared(prepared.error());
  return was;
}

FileReading Operation::take(const std::string& who, WasRead read) {
  const std::string file = settings_file(line_);
  const std::optional<Error> wrong = !read.settings   ? std::optional(read.settings.error())
                                     : !read.prepared ? std::optional(read.prepared.error())
                                                      : std::nullopt;
  if (wrong) {
    FileReading reading{.complaints = lines_of(*wrong), .changes = {}};
    log_always(who + " has " + printable(file) + " read again: it cannot be taken, and nothing has changed");
    for (const std::string& line : reading.complaints) log_warning(printable(line));
    return reading;
  }
  FileReading reading{.complaints = {},
                      .remarks = std::move((*read.prepared)->remarks),
                      .changes = changes(in_force_, *read.settings, every_key())};
  for (const std::string& remark : reading.remarks) log_warning(printable(remark));
  in_force_ = (*read.prepared)->settings;
  put_in_force(**std::move(read.prepared), parts_);
  log_changes(who, file, reading.changes);
  return reading;
}

// ---- draining ----

void Operation::drain(const std::string& who, ThenStop then) {
  if (lifetime_.ending()) return;
  stops_ = stops_ || then == ThenStop::kYes;
  log_always(who + " has it drained" + (stops_ ? ", and stopped then" : "") + ": " +
             std::to_string(parts_.pipeline.under_way()) + " batches are under way, " +
             times(parts_.sessions.sessions(), "session") + " open");
  drain_until_ = SteadyClock::now() + in_force_.drain;  // each order waits anew
  patience_.expires_at(*drain_until_);
  patience_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) drained();
  });
  parts_.grpc.refuse(millrace::draining());
  parts_.sessions.refuse_opening(millrace::draining());
  parts_.pipeline.drain(millrace::draining(), [this] { drained(); });
}

// Nothing is under way, or the time is over.
void Operation::drained() {
  if (lifetime_.ending() || !drain_until_) return;
  patience_.cancel();
  const std::size_t left = parts_.pipeline.under_way();
  log_always(left == 0 ? "drained: no batch is under way"
                       : "draining has taken daemon.drain_seconds, and " + std::to_string(left) +
                             " batches are still under way");
  if (!stops_) return;
  told_.expires_after(kUntilTold);
  told_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && drain_until_ && stops_) lifetime_.end();  // unless it was resumed meanwhile
  });
}

bool Operation::resume(const std::string& who) {
  if (!drain_until_ || lifetime_.ending()) return false;
  drain_until_.reset();
  stops_ = false;
  patience_.cancel();
  parts_.pipeline.resume();
  parts_.grpc.accept_again();
  log_always(who + " has it take new work again");
  return true;
}

Draining Operation::draining() const {
  const auto now = SteadyClock::now();
  const bool on = drain_until_ || lifetime_.ending();
  const auto left = drain_until_ && *drain_until_ > now
                        ? std::chrono::duration_cast<std::chrono::milliseconds>(*drain_until_ - now)
                        : std::chrono::milliseconds(0);
  return {.on = on,
          .stops = stops_ || lifetime_.ending(),
          .time_over = drain_until_ && left.count() == 0,
          .batches = parts_.pipeline.under_way(),
          .left = left};
}

}  // namespace millrace
