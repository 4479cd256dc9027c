// Ctrl-C and SIGTERM as a state that loops look at, so that a command ends in order: slots back, private daemon
// stopped, position saved. Thread-safe.
#pragma once

#include <chrono>

namespace millrace::cli {

// How often loops that wait look.
inline constexpr std::chrono::milliseconds kLookEvery{200};

void watch_for_interrupt();  // from here on the signals do nothing else
bool interrupted();
// Waits, but not beyond an interrupt. false: interrupted.
bool wait_unless_interrupted(std::chrono::milliseconds time);

}  // namespace millrace::cli
