// How often each of many things was asked for lately, in fixed memory: a count-min sketch with conservative update
// (Cormode, Muthukrishnan 2005; Estan, Varghese 2002), halved now and then, so that what was long ago counts less
// (Einziger, Friedman, Manes: "TinyLFU", 2017). Counts may be too high where things collide, never too low, up to 255.
// Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

class AccessSketch {
 public:
  explicit AccessSketch(std::size_t counters);  // rounded up to a power of two, at least 1,024; a byte each

  void access(std::uint64_t thing, double now);
  unsigned count(std::uint64_t thing) const;
  // The seconds to which the counts belong; at least one.
  double span(double now) const;

 private:
  static constexpr unsigned kRows = 4;
  std::size_t place(std::uint64_t thing, unsigned row) const;
  void halve(double now);

  std::vector<std::uint8_t> counters_;
  std::uint64_t accesses_ = 0;  // since the last halving, half of those before it among them
  double since_ = -1;           // less than 0: nothing yet
};

}  // namespace millrace
