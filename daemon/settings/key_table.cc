#include "daemon/settings/key_table.h"

#include <limits>

#include "daemon/settings/state_dir.h"

namespace millrace {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

constexpr Word<LogLevel> kLevels[] = {{"error", LogLevel::kError},
                                      {"warning", LogLevel::kWarning},
                                      {"info", LogLevel::kInfo},
                                      {"debug", LogLevel::kDebug}};

#define AT(member) [](auto& settings) -> decltype((settings.member)) { return settings.member; }

const KeyGroup kGroups[] = {
    {"daemon", "The daemon itself."},
    {"lanes", "Threads."},
    {"memory",
     "Budgets for memory. Sizes are bytes, or text with a unit: \"4 GiB\", \"500 MB\" (B, kB, MB, GB, TB, KiB, MiB, "
     "GiB, TiB)."},
    {"cache",
     "What is kept of images that were read, so that they are made faster the next time: where decoding can start "
     "(seek "
     "indexes), coefficients (packed forms) and finished tensors. With fidelity exact, pixels are the same whatever is "
     "kept; with fast, tensors of progressive files, of others in several scans, and of those with restart markers may "
     "differ, within its bound, once the file is packed."},
    {"files", "What clients may read."},
    {"access", "Who may do what."},
    {"fair", "Who gets how much of the daemon when several users want it."},
    {"limits", "What one image, batch or session may cost."},
    {"backends", "What turns bytes into pixels."},
};

// clang-format off
const Key kKeys[] = {
    {"daemon.socket", place(AT(socket)), "gRPC listens on this Unix socket, the hand-off of descriptors on the same path + \".handoff\"."},
    {"daemon.log_level", choice(AT(log_level), kLevels), "What goes to stderr, each with all before it: \"error\" (a device is lost), \"warning\" (refused for want of rights or room, a client that died, something slow, what the daemon lacks), \"info\" (sessions opened and closed, roots that come and go) or \"debug\" (the settings in force, other refusals). No line a batch; what one user can cause is a line every six seconds in the long run.", Counts::kLive},
    {"daemon.drain_seconds", number(AT(drain), 0, 3'600), "After SIGTERM, batches under way have this long to finish.", Counts::kLive},
    {"daemon.slow_milliseconds", number(AT(slow), 0, 3'600'000), "An image that takes longer than this to read, or to decode and transform, is told of in the log, at most every ten seconds. 0: none is.", Counts::kLive},
    {"daemon.state_dir", AutomaticFolder{place(AT(state_dir)), automatic_state_dir}, "Folder for what is remembered from start to start, which is what cache.disk says. Empty, or no such folder: nothing is. \"auto\": /var/lib/millrace where it is this user's, as it is the service's; else $XDG_STATE_HOME/millrace or ~/.local/state/millrace, which is made. A user's daemons may share it."},

    {"lanes.fetch_threads", number(AT(fetch_threads), 1, 256), "Threads that read files and list folders. They mostly wait for disks."},

    {"memory.segments", AutomaticSize{number(AT(segment_budget), (1_MiB).count, std::uint64_t{1} << 50), automatic_segment_budget}, "Shared memory of all sessions together, for finished tensors. \"auto\": half of /dev/shm, or of the memory that clients can have, whichever is less: main memory or the control group's limit, less some that the daemon takes itself. A session is charged whole when it opens. Its memory is filled after that, and its first batch waits for its first slot alone.", Counts::kLive},
    {"memory.encoded_in_flight", number(AT(encoded_in_flight), (1_MiB).count, std::uint64_t{1} << 50), "Encoded bytes that were read and wait to be decoded; over it, reading waits.", Counts::kLive},
    {"memory.decoding", AutomaticSize{number(AT(decoding), (32_MiB).count, std::uint64_t{1} << 50), automatic_decoding_budget}, "What all lanes together may take for large pictures while they are decoded: those that take more than the 32 MiB that a lane keeps anyway. Over it, a picture waits for others; one that needs more alone is an error of its sample. \"auto\": a quarter of the memory that clients can have, at least 256 MiB.", Counts::kLive},
    {"memory.requests", AutomaticSize{number(AT(requests), (1_MiB).count, std::uint64_t{1} << 50), automatic_request_budget}, "What clients' requests take while the daemon keeps them: batches from when they come until they end, the bytes sent with them included, the listings of datasets, the orders of epochs, messages that a client has not read. Over it, requests are refused. \"auto\": a sixteenth of the memory that clients can have.", Counts::kLive},
    {"memory.user_percent", number(AT(user_percent), 1, 100), "The most that one user may hold of memory.segments, and of memory.requests, in percent. Where several users can reach the socket, a user may besides hold no more than seven times what is free: alone seven eighths, two of them seven fifteenths each; the rest is for the user who comes next.", Counts::kLive},

    {"cache.memory", AutomaticSize{.number = number(AT(cache_memory), 0, std::uint64_t{1} << 50), .automatic = automatic_cache_memory, .zero_is_automatic = false}, "What is kept in memory. \"auto\": an eighth of the memory that clients can have, at most 64 GiB. 0: nothing is kept at all."},
    {"cache.disk", AutomaticSize{.number = number(AT(cache_disk), 0, kAutomatic.count), .automatic = [] { return kAutomatic; }, .zero_is_automatic = false}, "What is kept in daemon.state_dir, for the next start. \"auto\": a tenth of what is free on its file system, at most 256 GiB. 0: nothing; nor on a network file system."},
    {"cache.packed", place(AT(packed)), "Whether coefficients of JPEG files that are read again are kept: some 1.2 times the size of photographs' files and up to 2.3 times that of strongly compressed ones, decoded in half the time. false: seek indexes alone, which take 1.3 %."},
    {"cache.tensors", place(AT(tensors)), "Whether finished tensors are kept, of recipes without random choices, of 8 bits an element."},
    {"cache.settled_seconds", number(AT(stable_after), 2, 86'400), "A file that has been unchanged for so long, as its ctime says, is not read again if what is kept stands in for it. Programs that change files through shared mappings need the half minute that the kernel takes to write those pages back (vm.dirty_expire_centisecs), and some more on a busy disk."},

    {"files.roots", place(AT(roots)), "Folders beneath which clients may read, as far as they could read there themselves, for example [\"/data/images\"]. One that is not there yet, as one that is mounted later, is served once it is. Empty: no files, only bytes that clients send.", Counts::kLive},
    {"files.opener", place(AT(opener)), "Socket of the opener, a small process that opens files as the client who asks for them, so that the kernel decides and the daemon's own user needs no right to them. \"auto\": /run/millrace-opener/opener.sock once it is there, if daemon.socket is the usual one: an opener serves one daemon. \"\": none; then the daemon opens files itself, where both its user and the client may read them."},
    {"files.as_root", place(AT(as_root)), "Whether the opener opens files for clients that are root, as user 0 without root's privileges. false: they get what the daemon's own user may read."},

    {"access.admins", place(AT(admins)), "Users and groups, by name or number, who may order this daemon about: drain it, have it read its settings again, close others' sessions (`millrace admin`), drop and verify what is kept (`millrace cache`). A group has an @ before it: [\"alice\", \"@ops\", \"1004\"]. Root and the daemon's own user always may. Names are looked up at the start, and whenever this file is read again.", Counts::kLive},

    {"fair.weights", place(AT(fair_weights)), "Users who have a right to more lane time than others while others want it, too: [\"alice=3\", \"1002=2\", \"@vision=2\"], by name or number, groups with @. A user who is not named has the highest weight of his groups, or else 1; 1 to 1000. With alice=3 and bob, alice has three quarters. A session's priority divides its own user's share (high 8, normal 2, low 1) and takes nothing of others'.", Counts::kLive},

    {"limits.encoded", number(AT(limits.sample.encoded), 1, std::uint64_t{1} << 40), "Bytes of one encoded image.", Counts::kLive},
    {"limits.pixels", number(AT(limits.sample.pixels), 1, std::uint64_t{1} << 36), "Width x height of one encoded image.", Counts::kLive},
    {"limits.side", number(AT(limits.sample.side), 1, 1'000'000), "Width or height of one encoded image, pixels.", Counts::kLive},
    {"limits.time_milliseconds", number(AT(limits.sample.time), 1, 3'600'000), "Decoding and transforming one image.", Counts::kLive},
    {"limits.samples", number(AT(limits.batch.samples), 1, 1'000'000), "Images in one batch.", Counts::kLive},
    {"limits.path_bytes", number(AT(limits.batch.path_bytes), 1, 65'536), "Length of one path.", Counts::kLive},
    {"limits.inline_message", number(AT(limits.batch.inline_message), 0, kInlineMost.count), "Encoded bytes within one request; larger ones go through files or the input ring.", Counts::kLive},
    {"limits.sessions", number(AT(limits.session.sessions), 1, 65'536), "Sessions open at the same time.", Counts::kLive},
    {"limits.sessions_per_user", number(AT(limits.session.sessions_per_user), 1, 65'536), "The same, for each user.", Counts::kLive},
    {"limits.connections", number(AT(limits.session.connections), 0, 1'000'000), "Connections to the gRPC socket at the same time. 0: twice limits.sessions, and 32 more. Eight more are kept for those who may order the daemon about (access.admins).", Counts::kLive},
    {"limits.connections_per_user", number(AT(limits.session.connections_per_user), 0, 1'000'000), "The same, for each user. 0: twice limits.sessions_per_user, and 16 more.", Counts::kLive},
    {"limits.slots", number(AT(limits.session.slots), 1, 65'536), "Slots of one session: finished batches that it may hold.", Counts::kLive},
    {"limits.queued_batches", number(AT(limits.session.queued_batches), 1, 1'000'000), "Batches of one session that wait for a slot.", Counts::kLive},
    {"limits.datasets", number(AT(limits.session.datasets), 0, 65'536), "Datasets that one session has open.", Counts::kLive},
    {"limits.epochs", number(AT(limits.session.epochs), 1, 65'536), "Epochs of one session that run, or are being shuffled.", Counts::kLive},
    {"limits.dataset_files", number(AT(limits.session.dataset_files), 1, kMost32), "Files in one dataset.", Counts::kLive},
    {"limits.ring", number(AT(limits.session.ring), 0, std::uint64_t{1} << 50), "Bytes of one session's input ring, memory that the client fills and pays for.", Counts::kLive},

};
// clang-format on

#undef AT

const GoneKey kGone[] = {
    {"cache.index_memory", "cache.memory bounds all that is kept in memory, seek indexes among it"},
    {"cache.index_disk", "cache.disk bounds all that is kept in daemon.state_dir"},
};

// Those that belong to no part.
SettingsPart own_settings() {
  return {.keys = kKeys, .groups = kGroups, .gone = kGone, .complaints = own_complaints};
}

}  // namespace

KeyTable::KeyTable(std::span<const SettingsPart> parts, UnknownKeys unknown) : unknown_(unknown) {
  const SettingsPart own = own_settings();
  groups_.assign(own.groups.begin(), own.groups.end());
  const auto take = [this](const SettingsPart& part) {
    keys_.insert(keys_.end(), part.keys.begin(), part.keys.end());
    gone_.insert(gone_.end(), part.gone.begin(), part.gone.end());
    if (part.complaints != nullptr) rules_.push_back(part.complaints);
  };
  for (const SettingsPart& part : parts) {
    groups_.insert(groups_.end(), part.groups.begin(), part.groups.end());
    take(part);
  }
  take(own);
}

}  // namespace millrace
