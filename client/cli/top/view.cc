#include "client/cli/top/view.h"

#include <algorithm>

namespace millrace::cli {
namespace {

// Whether `a` comes before `b`; numbers from the largest on.
bool is_before(const TopSession& a, const TopSession& b, TopSort sort) {
  switch (sort) {
    case TopSort::kId:
      return a.id < b.id;
    case TopSort::kSession:
      return a.name < b.name;
    case TopSort::kUser:
      return a.user < b.user;
    case TopSort::kJob:
      return a.job < b.job;
    case TopSort::kRate:
      return a.images_per_second > b.images_per_second;
    case TopSort::kWaited:
      return a.waited.value_or(-1) > b.waited.value_or(-1);
    case TopSort::kCause:
      return a.cause < b.cause;
    case TopSort::kLanes:
      return a.lanes > b.lanes;
  }
  return false;
}

// By so many places, none beyond an end.
std::size_t moved(std::size_t at, TopKey key, std::size_t page, std::size_t most) {
  const std::size_t steps = key == TopKey::kPageUp || key == TopKey::kPageDown ? std::max<std::size_t>(page, 1) : 1;
  const bool is_up = key == TopKey::kUp || key == TopKey::kPageUp;
  return is_up ? at - std::min(at, steps) : std::min(at + steps, most);
}

TopView with_move(TopKey key, TopView view, const TopModel& model, std::size_t page) {
  if (view.page != TopPage::kSessions) {
    constexpr std::size_t kAnyEnd = 10'000;  // the screen ends it where its text does
    view.scrolled = moved(view.scrolled, key, page, kAnyEnd);
    return view;
  }
  const auto sessions = in_order(model, view);
  if (sessions.empty()) return view;
  view.selected = sessions[moved(selected_of(sessions, view), key, page, sessions.size() - 1)]->id;
  return view;
}

TopView turned_to(TopPage page, TopView view) {
  view.page = page;
  view.scrolled = 0;
  return view;
}

}  // namespace

std::vector<const TopSession*> in_order(const TopModel& model, const TopView& view) {
  std::vector<const TopSession*> sessions;
  for (const TopSession& session : model.sessions) sessions.push_back(&session);
  std::ranges::stable_sort(sessions, [&](const TopSession* a, const TopSession* b) {
    return view.is_reversed ? is_before(*b, *a, view.sort) : is_before(*a, *b, view.sort);
  });
  return sessions;
}

std::size_t selected_of(const std::vector<const TopSession*>& sessions, const TopView& view) {
  const auto found = std::ranges::find(sessions, view.selected, &TopSession::id);
  return found == sessions.end() ? 0 : static_cast<std::size_t>(found - sessions.begin());
}

TopView after(TopKey key, TopView view, const TopModel& model, std::size_t page) {
  const auto sorts = static_cast<std::uint8_t>(kTopSorts);
  const auto sort = static_cast<std::uint8_t>(view.sort);
  switch (key) {
    case TopKey::kUp:
    case TopKey::kDown:
    case TopKey::kPageUp:
    case TopKey::kPageDown:
      return with_move(key, view, model, page);
    case TopKey::kLeft:
      view.sort = static_cast<TopSort>((sort + sorts - 1) % sorts);
      return view;
    case TopKey::kRight:
      view.sort = static_cast<TopSort>((sort + 1) % sorts);
      return view;
    case TopKey::kEnter: {
      if (view.page != TopPage::kSessions) return turned_to(TopPage::kSessions, view);
      const auto sessions = in_order(model, view);
      if (sessions.empty()) return view;
      view.selected = sessions[selected_of(sessions, view)]->id;
      return turned_to(TopPage::kWhy, view);
    }
    case TopKey::kBack:
      return turned_to(TopPage::kSessions, view);
    case TopKey::kReverse:
      view.is_reversed = !view.is_reversed;
      return view;
    case TopKey::kPause:
      view.is_paused = !view.is_paused;
      return view;
    case TopKey::kHelp:
      return turned_to(view.page == TopPage::kHelp ? TopPage::kSessions : TopPage::kHelp, view);
  }
  return view;
}

}  // namespace millrace::cli
