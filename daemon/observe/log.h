// The daemon's log: lines on stderr, where systemd takes them up. One line a message: time, level, text; where stderr is
// the journal, the level as the journal wants it, `<4>`, and the text, so that `journalctl -p warning` finds it. What
// comes from a client goes through printable() (proto/base/printable.h) first; tickets and names of shared memory are
// never logged.
//
// Thread-safe. Before start_log() everything from `info` up is shown; it may be called again, for another level.
#pragma once

#include <sys/stat.h>

#include <string_view>

#include "proto/base/log_level.h"

namespace millrace {

void start_log(LogLevel level);

void log_error(std::string_view text);
void log_warning(std::string_view text);
void log_info(std::string_view text);
void log_debug(std::string_view text);

// Whatever the level is: what an administrator did, which nobody may hide. Shown as `info`.
void log_always(std::string_view text);

void log_line(LogLevel level, std::string_view text);

// Whether a line of this level would be shown; asked before a text that costs something is made.
bool logs(LogLevel level);

// What a program says on stderr before it ends for want of something, whether the log was started or not:
// `program: text`, each line an error to the journal.
void print_failure(std::string_view program, std::string_view text);

// Whether what is `opened` is what $JOURNAL_STREAM says: device and inode of the journal's end, as `dev:inode`
// (systemd.exec(5)). A process that is started by another inherits the variable, but not always its stderr.
bool is_journal(std::string_view journal_stream, const struct stat& opened);

}  // namespace millrace
