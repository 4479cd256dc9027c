#include "daemon/process/process.h"

#include <google/protobuf/stubs/logging.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <optional>
#include <sstream>
#include <string>

#include "daemon/observe/log.h"
#include "daemon/process/budget_text.h"
#include "daemon/process/parts.h"

namespace millrace {
namespace {

// Blocks of 8 MiB and more are the kernel's again as soon as they are freed. By itself glibc raises that bound to 32
// MiB once such blocks were freed, and then every lane keeps what its largest pictures took. Smaller ones are reused:
// of the free memory at its end, an arena keeps up to 16 MiB, so that ordinary pictures ask the kernel for nothing.
void give_large_blocks_back() {
  ::mallopt(M_MMAP_THRESHOLD, 8 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void log_in_force(const Settings& settings) {
  if (!logs(LogLevel::kDebug)) return;
  std::istringstream lines(to_toml(settings, every_key()));
  for (std::string line, table; std::getline(lines, line);) {
    if (line.starts_with('[')) table = line.substr(1, line.size() - 2);
    if (line.find(" = ") != std::string::npos) log_debug("setting " + table + '.' + line);
  }
}

// What libprotobuf complains about (text that is not UTF-8), and how often, is up to clients, whose calls' status says
// it; but a check that ends the daemon says why.
void log_what_aborts(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  if (level == google::protobuf::LOGLEVEL_FATAL) log_error("libprotobuf: " + text);
}

}  // namespace

void prepare_process(const Settings& settings) {
  give_large_blocks_back();
  start_log(settings.log_level);
  google::protobuf::SetLogHandler(log_what_aborts);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on files' sizes counts for shared memory, too: an error where it is filled
  ::pthread_setname_np(::pthread_self(), "mr-control");
  for (const std::string& remark : settings.remarks) log_warning(remark);
  if (const std::optional<std::string> much = too_much_memory(settings)) log_warning(*much);
  log_in_force(settings);
}

}  // namespace millrace
