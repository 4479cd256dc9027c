// The command line and the daemon's own: exit codes, messages, JSON, pictures.
#include <signal.h>
#include <spng.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

// A picture folder with three files that are none.
struct BadFolder {
  BadFolder() {
    write_image_folder(folder.path(), {.images = 12, .classes = 0});
    for (const std::string& path : bad) write_file(path, std::string("this is not a picture"));
    std::filesystem::resize_file(bad[2], 0);
  }
  TempFolder folder;
  std::vector<std::string> bad{folder / "bad_1.jpg", folder / "bad_2.png", folder / "bad_3.jpg"};
};

TEST_CASE("run --on-error skip names every bad file with its reason and ends with 0", "[system]") {
  const BadFolder pictures;

  const Ran ran = run({"millrace", "run", "--private", "--dataset", pictures.folder.path(), "--on-error", "skip",
                       "--batch", "4", "--size", "64"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  for (const std::string& path : pictures.bad) REQUIRE_THAT(ran.errors, Catch::Contains(path));
  REQUIRE_THAT(ran.errors, Catch::Contains("74 68 69 73") && Catch::Contains("empty"));
}

TEST_CASE("run --on-error fail ends with 1 and names the first bad file", "[system]") {
  const BadFolder pictures;

  const Ran ran =
      run({"millrace", "run", "--private", "--dataset", pictures.folder.path(), "--on-error", "fail", "--size", "64"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.errors, Catch::Contains("millrace: ") && Catch::Contains("bad_1.jpg"));
}

TEST_CASE("run --json prints one object with its figures", "[system]") {
  const BadFolder pictures;

  const Ran ran = run({"millrace", "run", "--private", "--dataset", pictures.folder.path(), "--on-error", "skip",
                       "--size", "64", "--json"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  const auto object = parsed(ran.output);
  REQUIRE(object.get<int>("images") == 12);
  REQUIRE(object.get<int>("bad") == 3);
  REQUIRE(object.get<double>("images_per_second") > 0);
  REQUIRE(object.get_child("bad_samples").size() == 3);
}

TEST_CASE("run with a daemon that is there", "[system]") {
  TempFolder folder;
  write_image_folder(folder.path(), {.images = 12, .classes = 2});
  const Daemon daemon({.roots = {folder.path()}});

  const Ran ran = run({"millrace", "run", "--socket", daemon.socket(), "--dataset", folder.path(), "--size", "64",
                       "--epochs", "2", "--fidelity", "fast"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE(daemon.metric("millrace_samples_total") == 24);
}

TEST_CASE("run and preview take packed recipes in every element type and layout", "[system]") {
  TempFolder folder;
  const TempFolder output;
  write_image_folder(folder.path(), {.images = 6, .classes = 0});
  const Daemon daemon({.roots = {folder.path()}});
  for (const std::string dtype : {"uint8", "float16", "bfloat16", "float32"}) {
    for (const std::string layout : {"nchw", "nhwc"}) {
      for (const std::string recipe : {"thumbnail", "none"}) {
        std::vector<std::string> argv{"millrace", "run",  "--socket",     daemon.socket(), "--dataset", folder.path(),
                                      "--recipe", recipe, "--dtype",      dtype,           "--layout",  layout,
                                      "--batch",  "6",    "--slot-bytes", "4MiB",          "--json"};
        if (recipe == "thumbnail") argv.insert(argv.end(), {"--size", "40"});
        const Ran ran = run(argv);
        CAPTURE(dtype, layout, recipe, ran.errors);
        REQUIRE(ran.status == 0);
        REQUIRE(parsed(ran.output).get<int>("images") == 6);
      }
    }
    const Ran preview = run({"millrace", "preview", folder.path(), "--socket", daemon.socket(), "--recipe", "thumbnail",
                             "--dtype", dtype, "-o", output / "sheet.png"});
    CAPTURE(dtype, preview.errors);
    REQUIRE(preview.status == 0);
    REQUIRE_THAT(preview.output, Catch::Contains("6 samples"));
  }
}

TEST_CASE("the commands take folders and files whose names are not UTF-8", "[system]") {
  const TempFolder output;
  const TempFolder temp;
  const std::string folder = temp / "caf\xe9";
  const auto paths = write_image_folder(folder + "/\xff", {.images = 4, .classes = 0});
  std::filesystem::rename(paths[0], folder + "/\xff/\xfe.jpg");
  write_file(folder + "/\xff/bad\x80.jpg", std::string("this is not a picture"));
  const std::string shown = "caf\\xe9/\\xff/bad\\x80.jpg: ";

  const Ran json = run({"millrace", "run", "--private", "--dataset", folder, "--size", "64", "--json"});
  const Ran preview = run({"millrace", "preview", folder, "--private", "-o", output / "sheet.png"});
  const Ran index = run({"millrace", "index", "stat", folder, "--private", "--json"});
  const Ran doctor = run({"millrace", "doctor", "--private", "--root", folder});

  CAPTURE(json.errors, preview.errors, index.errors, doctor.errors, doctor.output);
  REQUIRE(json.status == 0);
  REQUIRE(parsed(json.output).get<int>("images") == 4);
  REQUIRE(parsed(json.output).get<int>("bad") == 1);
  REQUIRE_THAT(json.errors, Catch::Contains(shown));
  REQUIRE(preview.status == 0);
  REQUIRE_THAT(preview.output, Catch::Contains("5 samples"));
  REQUIRE_THAT(preview.errors, Catch::Contains(shown));
  REQUIRE(index.status == 0);
  REQUIRE(parsed(index.output).get<int>("images") == 4);
  REQUIRE_THAT(doctor.output, Catch::Contains("caf\\xe9: you may list and read it"));
}

TEST_CASE("as many round trips as ping is asked for are within what a user may call", "[system]") {
  const Daemon daemon({});

  const Ran ping = run({"millrace", "ping", "--socket", daemon.socket(), "-c", "1400"});

  CAPTURE(ping.errors);
  REQUIRE(ping.status == 0);
  REQUIRE_THAT(ping.output, Catch::Contains("1400 round trips"));
}

TEST_CASE("ping, stats and devices tell of a daemon", "[system]") {
  const Daemon daemon({});

  const Ran ping = run({"millrace", "ping", "--socket", daemon.socket(), "-c", "2"});
  const Ran stats = run({"millrace", "stats", "--socket", daemon.socket(), "--json"});
  const Ran plain = run({"millrace", "stats", "--socket", daemon.socket(), "--all"});
  const Ran devices = run({"millrace", "devices", "--socket", daemon.socket(), "--json"});

  REQUIRE(ping.status == 0);
  REQUIRE_FALSE(ping.output.empty());
  REQUIRE(stats.status == 0);
  REQUIRE_FALSE(parsed(stats.output).empty());
  REQUIRE_THAT(stats.output, Catch::Contains("millrace_samples_total"));
  REQUIRE(plain.status == 0);
  REQUIRE_THAT(plain.output, Catch::Contains("Images made"));
  REQUIRE(devices.status == 0);
  REQUIRE_THAT(devices.output, Catch::Contains("cpu") && Catch::Contains("jpeg"));
  REQUIRE_FALSE(parsed("{\"devices\": " + devices.output + "}").empty());
}

struct Picture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // RGB
};

Picture read_png(const std::string& path) {
  const auto bytes = read_file(path);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(0), spng_ctx_free);
  spng_ihdr header{};
  std::size_t size = 0;
  REQUIRE(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()) == 0);
  REQUIRE(spng_get_ihdr(context.get(), &header) == 0);
  REQUIRE(spng_decoded_image_size(context.get(), SPNG_FMT_RGB8, &size) == 0);
  Picture picture{header.width, header.height, std::vector<std::uint8_t>(size)};
  REQUIRE(spng_decode_image(context.get(), picture.pixels.data(), size, SPNG_FMT_RGB8, 0) == 0);
  return picture;
}

TEST_CASE("preview writes a contact sheet with something on it", "[system]") {
  TempFolder folder;
  write_image_folder(folder / "pictures", {.images = 6, .classes = 0});

  const Ran ran = run({"millrace", "preview", "--private", folder / "pictures", "-n", "4", "-o", folder / "sheet.png"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output + ran.errors, Catch::Contains("sheet.png"));
  Picture sheet = read_png(folder / "sheet.png");
  REQUIRE(sheet.width >= 300);
  REQUIRE(sheet.height >= 300);
  REQUIRE(sheet.width * sheet.height < 64'000'000);
  std::sort(sheet.pixels.begin(), sheet.pixels.end());
  const auto shades = std::unique(sheet.pixels.begin(), sheet.pixels.end()) - sheet.pixels.begin();
  REQUIRE(shades > 64);  // pictures, not a plain surface
}

TEST_CASE("no daemon there: status 3, and how to start one", "[system]") {
  TempFolder folder;
  const std::string nowhere = folder / "none.sock";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"millrace", "ping", "--socket", nowhere},
        {"millrace", "ping", "--alive", "--socket", nowhere},
        {"millrace", "stats", "--socket", nowhere},
        {"millrace", "top", "--once", "--socket", nowhere},
        {"millrace", "devices", "--socket", nowhere},
        {"millrace", "run", "--socket", nowhere, "--dataset", folder.path()},
        {"millrace", "preview", "--socket", nowhere, folder.path(), "-o", folder / "x.png"}}) {
    const Ran ran = run(command);
    CAPTURE(command, ran.output, ran.errors);
    REQUIRE(ran.status == 3);
    REQUIRE_THAT(ran.errors, Catch::StartsWith("millrace: ") && Catch::Contains(nowhere) &&
                                 Catch::Contains("systemctl start millraced") && Catch::Contains("--private"));
  }
}

TEST_CASE("wrong usage: status 2", "[system]") {
  REQUIRE(run({"millrace", "fly"}).status == 2);
  REQUIRE(run({"millrace"}).status == 2);
  REQUIRE(run({"millrace", "run", "--no-such-option"}).status == 2);
  REQUIRE(run({"millrace", "run", "--private"}).status == 2);
  REQUIRE(run({"millrace", "run", "--private", "--dataset", "/tmp", "--fidelity", "best"}).status == 2);
  REQUIRE(run({"millraced", "--no-such-option"}).status == 2);
}

TEST_CASE("a dataset that is not there: status 1, and its name", "[system]") {
  TempFolder folder;

  const Ran ran = run({"millrace", "run", "--private", "--dataset", folder / "missing"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status != 0);
  REQUIRE(ran.status != 3);
  REQUIRE_THAT(ran.errors, Catch::Contains("missing"));
}

TEST_CASE("--help teaches with examples", "[system]") {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"millrace", "--help"},
                                                  {"millrace", "run", "--help"},
                                                  {"millrace", "preview", "--help"},
                                                  {"millrace", "stats", "--help"},
                                                  {"millrace", "ping", "--help"},
                                                  {"millrace", "devices", "--help"},
                                                  {"millrace", "doctor", "--help"},
                                                  {"millrace", "cache", "--help"},
                                                  {"millrace", "admin", "--help"},
                                                  {"millrace", "admin", "drain", "--help"},
                                                  {"millrace", "convert", "--help"},
                                                  {"millraced", "--help"}}) {
    const Ran ran = run(command);
    CAPTURE(command, ran.output, ran.errors);
    REQUIRE(ran.status == 0);
    REQUIRE_THAT(ran.output, Catch::Contains("xample"));
  }
}

std::string value_of(const boost::property_tree::ptree& findings, const std::string& name) {
  for (const auto& [ignored, finding] : findings.get_child("findings")) {
    if (finding.get<std::string>("name") == name) return finding.get<std::string>("value");
  }
  return "not there";
}

TEST_CASE("the doctor says what is in force in a daemon that works", "[system]") {
  const TempFolder folder, state;
  Daemon daemon({.roots = {folder.path()}, .daemon = "state_dir = \"" + state.path() + "\"\n"});

  const Ran ran = run({"millrace", "doctor", "--socket", daemon.socket(), "--json"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  const auto findings = parsed(ran.output);
  REQUIRE(findings.get<bool>("healthy"));
  REQUIRE(value_of(findings, "settings") == daemon.settings());
  REQUIRE(value_of(findings, "files") == folder.path() + ": you may list and read it");
  REQUIRE_THAT(value_of(findings, "daemon"), Catch::Contains("pid " + std::to_string(daemon.pid())));
  REQUIRE_THAT(value_of(findings, "hand-over"), Catch::Contains("mapped"));
  REQUIRE(value_of(findings, "  placement") == "not pinned");
  REQUIRE_THAT(value_of(findings, "  decoding"), Catch::StartsWith("avx") || Catch::StartsWith("scalar"));
  REQUIRE_THAT(value_of(findings, "  decodes as"), !Catch::Equals("not there"));
  REQUIRE(value_of(findings, "  seek indexes") == "in memory and in " + state.path() + "/cache");
}

TEST_CASE("private daemons keep what they remember in the user's state directory", "[system]") {
  const TempFolder state;
  const std::string folder = state.path() + "/home/millrace";  // made by the first

  const std::vector<std::string> doctor{"millrace", "doctor", "--private", "--lanes", "1", "--json"};
  const auto findings = parsed(run(doctor, state.path() + "/home").output);

  REQUIRE(value_of(findings, "  seek indexes") == "in memory and in " + folder + "/cache");
  REQUIRE(std::filesystem::status(folder).permissions() == std::filesystem::perms::owner_all);
}

TEST_CASE("a daemon starts with a settings file that names what is gone, and says so", "[system]") {
  Daemon daemon({.cpu = "streams = 1\nindexed = \"lanes\"\n"});

  const Ran checked = run({"millraced", "--config", daemon.settings(), "--check-config"});

  REQUIRE_THAT(daemon.errors(), Catch::Contains("warning " + daemon.settings()) &&
                                    Catch::Contains("cpu.streams: is no setting any more: ") &&
                                    Catch::Contains("cpu.indexed: is no setting any more: "));
  REQUIRE(checked.status == 0);
  REQUIRE_THAT(checked.errors, Catch::Contains("cpu.streams: is no setting any more: "));
  REQUIRE_THAT(checked.output, !Catch::Contains("streams ="));
}

TEST_CASE("index build --private makes indexes that the next private daemon uses", "[system]") {
  const TempFolder state, folder;
  write_image_folder(folder.path(), {.images = 12, .min_side = 250, .max_side = 400, .only_jpeg = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));  // until the files go by their identity
  const auto index = [&](const char* task) {
    const Ran ran = run({"millrace", "index", task, folder.path(), "--private", "--json"}, state.path());
    REQUIRE(ran.status == 0);
    REQUIRE(ran.errors.find("go when the daemon stops") == std::string::npos);
    return parsed(ran.output);
  };

  const int made = index("build").get<int>("without_index");
  if (made == 0) return skip_loudly("using indexes: libjpeg-turbo is the fastest here");

  REQUIRE(index("verify").get<int>("with_index") == made);
}

TEST_CASE("index build says when nothing is kept", "[system]") {
  const BadFolder pictures;

  const Ran ran = run({"millrace", "index", "build", pictures.folder.path(), "--private"});

  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.errors, Catch::Contains("the indexes go when the daemon stops, for they are in memory only: "));
}

TEST_CASE("where nothing can be kept the doctor says why, and all works", "[system]") {
  const auto findings = parsed(run({"millrace", "doctor", "--private", "--lanes", "1", "--json"}).output);

  REQUIRE(findings.get<bool>("healthy"));
  REQUIRE_THAT(value_of(findings, "  seek indexes"),
               Catch::StartsWith("in memory only: ") && Catch::Contains("/dev/null/millrace: Not a directory"));
}

TEST_CASE("the settings choose how lanes decode and where they stay, and the doctor says so", "[system]") {
  Daemon daemon({.lanes = 1, .lane_settings = "pin = \"core\"\n", .cpu = "target = \"scalar\"\n"});

  const Ran ran = run({"millrace", "doctor", "--socket", daemon.socket()});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);  // that it reads no files is but a note
  REQUIRE_THAT(ran.output, Catch::Contains("decoding") && Catch::Contains("scalar"));
  REQUIRE_THAT(ran.output, Catch::Contains("lane 0: core 0 of node 0, processors "));
  REQUIRE_THAT(ran.output, Catch::Contains("Nothing is in the way."));
}

TEST_CASE("without a daemon the doctor looks at the host, says that none is there, and ends with 1", "[system]") {
  const TempFolder folder;

  const Ran ran = run({"millrace", "doctor", "--socket", folder / "nobody.sock"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE_THAT(ran.output, Catch::Contains("processor") && Catch::Contains("/dev/shm"));
  REQUIRE_THAT(ran.output,
               Catch::Contains("PROBLEM: ") && Catch::Contains("nobody.sock") && Catch::Contains("--private"));
}

TEST_CASE("the doctor looks at a daemon of its own, too", "[system]") {
  const Ran ran = run({"millrace", "doctor", "--private", "--lanes", "1"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output, Catch::Contains("no file: defaults"));
}

}  // namespace
}  // namespace millrace
