#include "daemon/observe/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace millrace {
namespace {

// The process has one stderr, and so one log. It throws nothing: spdlog reports its own troubles on stderr.
spdlog::logger& logger() {
  static const std::unique_ptr<spdlog::logger> the_log = [] {
    auto made = std::make_unique<spdlog::logger>("millraced", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
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

}  // namespace millrace
