// What a test client can do: each act is one kind of client that a test needs as a process of its own, to kill it, to
// run it as another user, or to compare its output with another one's. client_main.cc has the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace {

using Arguments = std::span<const std::string>;  // after SOCKET; acts throw when one is missing

// The value after "key=" in `arguments`, else `otherwise`.
std::string option(Arguments arguments, std::string_view key, std::string otherwise = {});

// One line to stdout, at once; one line of stdin, false at its end.
void say(const std::string& line);
bool next_line(std::string& line);

// act_epoch.cc
int act_epoch(const std::string& socket, Arguments arguments);
int act_hold(const std::string& socket, Arguments arguments);
int act_open(const std::string& socket, Arguments arguments);
// act_crash.cc
int act_handoff(const std::string& socket, Arguments arguments);
int act_die_in_submit(const std::string& socket, Arguments arguments);
int act_die_with_work(const std::string& socket, Arguments arguments);
// act_flood.cc
int act_cancel_calls(const std::string& socket, Arguments arguments);
int act_ask_statistics(const std::string& socket, Arguments arguments);
int act_send_cancels(const std::string& socket, Arguments arguments);
// act_frames.cc
int act_send_frames(const std::string& socket, Arguments arguments);
int act_send_halves(const std::string& socket, Arguments arguments);
// act_work.cc
int act_work(const std::string& socket, Arguments arguments);
int act_list_again(const std::string& socket, Arguments arguments);
// act_access.cc
int act_read(const std::string& socket, Arguments arguments);
int act_list(const std::string& socket, Arguments arguments);
int act_gpu_read(const std::string& socket, Arguments arguments);
int act_gpu_memory(const std::string& socket, Arguments arguments);
int act_reopen(const std::string& socket, Arguments arguments);

}  // namespace millrace
