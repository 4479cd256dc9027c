// What of the model `millrace top` shows, and how keys change that. Values, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/cli/top/model.h"

namespace millrace::cli {

enum class TopSort : std::uint8_t { kId, kSession, kUser, kJob, kRate, kWaited, kCause, kLanes };
constexpr std::size_t kTopSorts = 8;

enum class TopKey : std::uint8_t {
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kLeft,
  kRight,
  kEnter,
  kBack,
  kReverse,
  kPause,
  kHelp
};

enum class TopPage : std::uint8_t { kSessions, kWhy, kHelp };

struct TopView {
  TopPage page = TopPage::kSessions;
  std::uint64_t selected = 0;  // a session; 0: the first one
  std::size_t scrolled = 0;    // lines of the page that are above the screen; of sessions, the screen decides
  TopSort sort = TopSort::kWaited;
  bool is_reversed = false;  // against the column's own direction: numbers begin with the largest, texts with A
  bool is_paused = false;
};

// The model's, as the view sorts them.
std::vector<const TopSession*> in_order(const TopModel& model, const TopView& view);
// Which of these is selected; 0 where the selected one is gone.
std::size_t selected_of(const std::vector<const TopSession*>& sessions, const TopView& view);

// `page`: lines that a page up or down goes.
TopView after(TopKey key, TopView view, const TopModel& model, std::size_t page);

}  // namespace millrace::cli
