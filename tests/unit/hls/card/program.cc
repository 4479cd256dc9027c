// millrace_card_scenes SCENE [ARGUMENT...]: what host programs do with cards; each test looks at a process of its own,
// since XRT looks for its driver once a process.
#include <cstdio>
#include <exception>

#include "tests/unit/hls/card/batch.h"

int main(int argc, char** argv) {
  using namespace millrace::card_scenes;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  try {
    for (const auto scenes : {batch_scenes(), fault_scenes(), sharing_scenes(), soak_scenes()})
      for (const Scene& scene : scenes)
        if (!arguments.empty() && scene.name == arguments[0]) return scene.run(Arguments(arguments).subspan(1));
  } catch (const std::exception& error) {
    std::printf("exception: %s\n", error.what());
    return 3;
  }
  std::fprintf(stderr, "no such scene\n");
  return 2;
}
