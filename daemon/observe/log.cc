#include "daemon/observe/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace millrace {
namespace {

// What a line of the journal begins with (sd-daemon(3)), by syslog's numbers.
std::string_view journal_priority(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "<3>";
  if (level == spdlog::level::warn) return "<4>";
  return level == spdlog::level::info ? "<6>" : "<7>";
}

class JournalPriority : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string_view priority = journal_priority(message.level);
    line.append(priority.data(), priority.data() + priority.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JournalPriority>(); }
};

bool stderr_is_journal() {
  struct stat there {};
  const char* const stream = std::getenv("JOURNAL_STREAM");
  return stream != nullptr && ::fstat(STDERR_FILENO, &there) == 0 && is_journal(stream, there);
}

// The journal has times and levels of its own.
std::unique_ptr<spdlog::formatter> line_format() {
  if (!stderr_is_journal()) return std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  auto made = std::make_unique<spdlog::pattern_formatter>();
  made->add_flag<JournalPriority>('*').set_pattern("%*%v");
  return made;
}

// The process has one stderr, and so one log. It throws nothing: spdlog reports its own troubles on stderr.
spdlog::logger& logger() {
  static const std::unique_ptr<spdlog::logger> the_log = [] {
    auto made = std::make_unique<spdlog::logger>("millraced", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(line_format());
    return made;
  }();
  return *the_log;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

}  // namespace

bool is_journal(std::string_view journal_stream, const struct stat& opened) {
  return journal_stream == std::to_string(opened.st_dev) + ":" + std::to_string(opened.st_ino);
}

void start_log(LogLevel level) {
  logger().set_level(spdlog_level(level));
}

void log_line(LogLevel level, std::string_view text) {
  logger().log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

void log_always(std::string_view text) {
  const spdlog::details::log_msg message("millraced", spdlog::level::info,
                                         spdlog::string_view_t(text.data(), text.size()));
  for (const spdlog::sink_ptr& sink : logger().sinks()) sink->log(message);
}

bool logs(LogLevel level) {
  return logger().should_log(spdlog_level(level));
}

void log_error(std::string_view text) {
  log_line(LogLevel::kError, text);
}

void log_warning(std::string_view text) {
  log_line(LogLevel::kWarning, text);
}

void log_info(std::string_view text) {
  log_line(LogLevel::kInfo, text);
}

void log_debug(std::string_view text) {
  log_line(LogLevel::kDebug, text);
}

void print_failure(std::string_view program, std::string_view text) {
  const std::string_view priority = stderr_is_journal() ? journal_priority(spdlog::level::err) : "";
  std::string lines = std::string(priority).append(program).append(": ");
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += priority;
  }
  std::fprintf(stderr, "%s\n", lines.c_str());
}

}  // namespace millrace
