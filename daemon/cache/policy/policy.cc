#include "daemon/cache/policy/policy.h"

#include <algorithm>
#include <limits>

#include "proto/base/result.h"

namespace millrace {
namespace {

constexpr double kMargin = 1.1;       // by so much a newcomer is worth more than who goes for it
constexpr double kIdleSeconds = 300;  // nobody has asked for a dataset's files for so long: it is not in use
constexpr double kBarSeconds = 1;
constexpr unsigned kRefusalsByBar = 16;
constexpr double kShortestWait = 1e-3;   // seconds; a lane takes as long
constexpr double kHitsUntilLasting = 2;  // what costs more than so many hits to make is kept for good
// A job alone needs each sample once between one epoch's end and the next one's, so of equals it is all the same who is kept
// over it, and swapping them brings nothing. Among unequal ones the next access may still decide.
constexpr double kLastingAlone = 0.9;
// Of files of no dataset: what was wanted so often again is hoped to be wanted so many times more often.
constexpr double kHope = 2;
constexpr double kOnceAccessed = 0.05;  // accesses of a thing that was asked for once: next to none, but not none

}  // namespace

// What entries of one group are worth at one moment.
class Policy::Appraisal {
 public:
  Appraisal(const Policy& policy, DatasetNumber dataset, const ReuseForecast& forecast, double now)
      : policy_(policy), dataset_(dataset), moment_(forecast.at(dataset, now)), span_(policy.sketch_.span(now)) {}

  bool is_used() const { return moment_.rate() > 0; }  // by sessions that tell

  double of(const Entry& entry) const {
    const Expectation expected = expect({dataset_, entry.sample, entry.listing});
    const double lasting = lasting_share(entry.saves, entry.costs);
    return (entry.saves + made_again(entry.costs, lasting)) / (entry.bytes * stay(expected, lasting));
  }
  // Of one that is still to be made; 0 or less: never worth it.
  double of(const Piece& piece) const {
    const Expectation expected = expect(piece.member);
    const double lasting = lasting_share(piece.saves, piece.costs);
    const double paid_off = lasting * piece.costs / std::max(expected.further, 1e-9);
    return (piece.saves - made_again(piece.costs, lasting) - paid_off) / (piece.bytes * stay(expected, lasting));
  }

 private:
  // From 0, the next access decides, to 1, what is in may stay for good.
  double lasting_share(double saves, double costs) const {
    const bool alone = is_used() && moment_.jobs() < 1.01;
    const double by_cost = saves > 0 ? std::min(costs / (kHitsUntilLasting * saves), 1.0) : 1.0;
    return std::max(by_cost, alone ? kLastingAlone : 0);
  }
  // Who goes is made again at its next access, or is not: half of it counts against the newcomer, and for who is in.
  static double made_again(double costs, double lasting) { return (1 - lasting) * costs / 2; }
  static double stay(const Expectation& expected, double lasting) {
    const double wait = (1 - lasting) * expected.wait + (lasting > 0 ? lasting / expected.rate : 0);
    return std::max(wait, kShortestWait);
  }

  Expectation expect(const DatasetMember& member) const {
    if (moment_.rate() > 0) return moment_.expect(member.sample, member.listing);
    const double again = std::max(policy_.sketch_.count(policy_.thing_of(member)) - 1.0, kOnceAccessed);
    return {.rate = again / span_, .wait = span_ / again, .further = kHope * again};
  }

  const Policy& policy_;
  const DatasetNumber dataset_;
  const ReuseForecast::Moment moment_;
  const double span_;
};

Policy::Policy(const Options& options)
    : budget_(options.budget.count), random_(options.seed | 1), sketch_(options.observed), groups_(1) {}

void Policy::asked(const DatasetMember& member, const ReuseForecast& forecast, double now) {
  Group& group = groups_[group_found(member.dataset)];
  if (group.dataset == member.dataset) group.last_used = std::max(group.last_used, now);
  if (!forecast.in_use(member.dataset)) sketch_.access(thing_of(member), now);
}

void Policy::accessed(Ticket ticket, const DatasetMember& member) {
  Entry& entry = entries_[ticket];
  MILLRACE_CHECK(entry.in);
  if (groups_[entry.group].dataset != member.dataset) {
    const GroupNumber group = group_of(member.dataset);
    if (group != entry.group) {
      groups_[group].last_used = std::max(groups_[group].last_used, groups_[entry.group].last_used);
      detach(ticket);
      attach(ticket, group);
    }
  }
  entries_[ticket].sample = member.sample;
  entries_[ticket].listing = member.listing;
}

bool Policy::worth_making(const Piece& piece, const ReuseForecast& forecast, double now) {
  going_.clear();
  const double worth = Appraisal(*this, piece.member.dataset, forecast, now).of(piece);
  const bool room = make_room(piece, worth, forecast, now, going_);
  for (const Ticket ticket : going_) entries_[ticket].going = false;
  return room;
}

std::optional<Policy::Ticket> Policy::admit(const Piece& piece, const ReuseForecast& forecast, double now,
                                            std::vector<Ticket>& gone) {
  going_.clear();
  const GroupNumber group = group_of(piece.member.dataset);
  groups_[group].last_used = std::max(groups_[group].last_used, now);
  const double worth = Appraisal(*this, piece.member.dataset, forecast, now).of(piece);
  const bool room = make_room(piece, worth, forecast, now, going_);
  for (const Ticket ticket : going_) entries_[ticket].going = false;
  if (!room) {
    drop_empty_group(group);
    return std::nullopt;
  }
  // The newcomer first, so that its group does not go with the last of its entries.
  const Ticket ticket = add(piece, group);
  for (const Ticket going : going_) removed(going);
  gone.insert(gone.end(), going_.begin(), going_.end());
  return ticket;
}

std::optional<Policy::Ticket> Policy::found(const Piece& piece, double last_used) {
  if (used_ + piece.bytes > budget_) return std::nullopt;
  const GroupNumber group = group_of(piece.member.dataset);
  if (groups_[group].empty()) groups_[group].last_used = last_used;
  groups_[group].last_used = std::max(groups_[group].last_used, last_used);
  return add(piece, group);
}

void Policy::removed(Ticket ticket) {
  MILLRACE_CHECK(entries_[ticket].in);
  used_ -= entries_[ticket].bytes;
  detach(ticket);
  entries_[ticket] = Entry{};
  free_.push_back(ticket);
}

bool Policy::make_room(const Piece& piece, double worth, const ReuseForecast& forecast, double now,
                       std::vector<Ticket>& going) {
  if (worth <= 0 || piece.bytes > budget_) return false;
  std::uint64_t used = used_;
  const bool lasting = piece.costs >= kHitsUntilLasting * piece.saves;  // worth much the same from moment to moment
  if (lasting && used + piece.bytes > budget_ && is_below_bar(worth, now)) return false;
  while (used + piece.bytes > budget_) {
    const std::optional<Victim> victim = worst(forecast, now);
    if (victim && victim->worth * kMargin >= worth) bar_ = {victim->worth * kMargin, now, kRefusalsByBar};
    if (!victim || victim->worth * kMargin >= worth) return false;
    entries_[victim->entry].going = true;
    going.push_back(victim->entry);
    used -= entries_[victim->entry].bytes;
  }
  return true;
}

bool Policy::is_below_bar(double worth, double now) {
  if (worth >= bar_.worth || bar_.refusals == 0 || now - bar_.since >= kBarSeconds) return false;
  --bar_.refusals;
  return true;
}

// Of what nobody uses, an entry of the dataset that is unused the longest; otherwise the worst that was drawn.
std::optional<Policy::Victim> Policy::worst(const ReuseForecast& forecast, double now) {
  std::optional<Victim> worst;
  std::optional<Ticket> idle;
  double longest = std::numeric_limits<double>::infinity();
  for (const Group& group : groups_) {
    if (group.empty()) continue;
    const Appraisal appraisal(*this, group.dataset, forecast, now);
    if (appraisal.is_used() || now - group.last_used <= kIdleSeconds) {
      if (idle) continue;
      for (std::size_t kind = 0; kind < kCachedKinds; ++kind)
        look(group, static_cast<CachedKind>(kind), appraisal, worst);
      continue;
    }
    if (group.last_used >= longest) continue;
    const std::optional<Ticket> entry = idle_entry(group);
    if (!entry) continue;
    idle = entry;
    longest = group.last_used;
  }
  return idle ? Victim{*idle, 0} : worst;
}

void Policy::look(const Group& group, CachedKind kind, const Appraisal& appraisal, std::optional<Victim>& worst) {
  const std::vector<Ticket>& list = group.lists[static_cast<std::size_t>(kind)];
  const bool all = list.size() <= kLooks;
  const std::size_t looks = all ? list.size() : kLooks;
  for (std::size_t i = 0; i < looks; ++i) {
    const Ticket ticket = list[all ? i : draw(list.size())];
    const Entry& entry = entries_[ticket];
    if (entry.going) continue;
    const double worth = appraisal.of(entry);
    if (!worst || worth < worst->worth) worst = Victim{ticket, worth};
  }
}

// The largest kind first; those that go already are at the end of their list, for they are taken from there.
std::optional<Policy::Ticket> Policy::idle_entry(const Group& group) const {
  for (std::size_t kind = kCachedKinds; kind-- > 0;) {
    const std::vector<Ticket>& list = group.lists[kind];
    for (std::size_t i = list.size(); i-- > 0;) {
      if (!entries_[list[i]].going) return list[i];
    }
  }
  return std::nullopt;
}

bool Policy::Group::empty() const {
  return std::all_of(lists.begin(), lists.end(), [](const std::vector<Ticket>& list) { return list.empty(); });
}

Policy::GroupNumber Policy::group_found(DatasetNumber dataset) const {
  const auto found = numbers_.find(dataset);
  return found == numbers_.end() ? GroupNumber{0} : found->second;
}

Policy::GroupNumber Policy::group_of(DatasetNumber dataset) {
  if (dataset == DatasetNumber::kNone) return 0;
  if (const GroupNumber number = group_found(dataset); number != 0) return number;
  if (free_groups_.empty() && groups_.size() == kMostGroups) return 0;
  GroupNumber number = static_cast<GroupNumber>(groups_.size());
  if (free_groups_.empty()) {
    groups_.emplace_back();
  } else {
    number = free_groups_.back();
    free_groups_.pop_back();
  }
  groups_[number].dataset = dataset;
  groups_[number].last_used = -std::numeric_limits<double>::infinity();
  numbers_.emplace(dataset, number);
  return number;
}

void Policy::drop_empty_group(GroupNumber number) {
  if (number == 0 || !groups_[number].empty()) return;
  numbers_.erase(groups_[number].dataset);
  groups_[number] = Group{};
  free_groups_.push_back(number);
}

std::uint64_t Policy::thing_of(const DatasetMember& member) const {
  const std::uint64_t sample = member.sample ^ (std::uint64_t{member.listing} << 32U);
  return static_cast<std::uint64_t>(member.dataset) ^ (sample * 0x9E3779B97F4A7C15);
}

Policy::Ticket Policy::add(const Piece& piece, GroupNumber group) {
  Ticket ticket = static_cast<Ticket>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    ticket = free_.back();
    free_.pop_back();
  }
  entries_[ticket] = Entry{.sample = piece.member.sample,
                           .bytes = std::max(piece.bytes, 1U),
                           .saves = piece.saves,
                           .costs = piece.costs,
                           .listing = piece.member.listing,
                           .kind = piece.kind,
                           .in = true};
  used_ += entries_[ticket].bytes;
  attach(ticket, group);
  return ticket;
}

void Policy::attach(Ticket ticket, GroupNumber group) {
  Entry& entry = entries_[ticket];
  std::vector<Ticket>& list = groups_[group].lists[static_cast<std::size_t>(entry.kind)];
  entry.group = group;
  entry.place = static_cast<std::uint32_t>(list.size());
  list.push_back(ticket);
}

void Policy::detach(Ticket ticket) {
  const Entry& entry = entries_[ticket];
  std::vector<Ticket>& list = groups_[entry.group].lists[static_cast<std::size_t>(entry.kind)];
  entries_[list.back()].place = entry.place;
  list[entry.place] = list.back();
  list.pop_back();
  drop_empty_group(entry.group);
}

std::uint32_t Policy::draw(std::size_t below) {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  return static_cast<std::uint32_t>(((random_ >> 32U) * below) >> 32U);
}

}  // namespace millrace
