// The best that a cache could have done, had it known all touches beforehand: by how much no policy can beat.
//
// A thing is kept, or not, from one of its touches to its next one; kept, the next touch is a hit. It gets in at a touch
// that was no hit, at its cost. So slots of the cache flow along the time line, and take detours through what they hold:
//
//    T0 ──────▶ T1 ──────▶ T2 ──────▶ T3 ──▶ ...        T: free bytes go on, cost 0
//    │make      │make      ▲          ▲                 T -> H: made, its cost
//    ▼          ▼          │let go    │                 H -> H: kept to its next touch, minus what the hit saves
//    H0 ────────┼────────▶ H2         │                 H -> T: let go
//               H1 ────────────────▶ H3
//
// The cheapest flow of as many bytes as the cache has is the optimum, exactly where all things are of one size (then
// the flow is of whole things), and else an upper bound: it may keep a part of a thing for a part of the hit.
// Without costs and with one size it is Belady's MIN with the right to let pass (Belady 1966).
// Successive shortest paths with potentials (Ahuja, Magnanti, Orlin: "Network Flows", 9.7), O(touches log touches) for
// each path; some seconds for 10,000 touches and 500 things.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::test {

struct FlowThing {
  std::int64_t bytes = 1;
  double saves = 1;
  double costs = 0;
};

enum class MakeAt : std::uint8_t {
  kAnyTouch,
  kSecondTouch,  // or a later one: for who cannot know at the first one that there will be another
};

// `touches`: numbers of things, in time order. What the hits save less what making costs.
double best_saving(const std::vector<FlowThing>& things, const std::vector<std::uint32_t>& touches, std::int64_t bytes,
                   MakeAt make);

}  // namespace millrace::test
