#include "probe/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "probe/device_json.h"

namespace ashlar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAnswerBytes = 8 << 20;
constexpr int kAnswerFile = 3;
constexpr const char* kKernelLog = "look for lines of the driver in the node's kernel log";

Json ToJson(const Accelerators& answer) {
  Json devices = Json::array();
  for (const DeviceInfo& device : answer.devices) devices.push_back(ToJson(device));
  return {{"probe", ToJson(answer.probe)}, {"devices", std::move(devices)}};
}

// Empty when it is not what ToJson writes: a driver may have written over the child's memory.
std::optional<Accelerators> FromJson(const std::string& text, const std::string& platform) {
  Result<Json> json = ParseJson(text, platform, {.depth = 8, .values = 40 * kMaxDevices});
  if (!json.ok() || !json->is_object() || !json->contains("probe") ||
      !json->value("devices", Json()).is_array())
    return std::nullopt;
  Problems problems;
  Accelerators answer;
  answer.probe = ReadProbe((*json)["probe"], "probe", problems);
  for (const Json& device : (*json)["devices"])
    answer.devices.push_back(ReadDevice(device, "devices", problems));
  if (!problems.empty() || answer.probe.platform != platform) return std::nullopt;
  return answer;
}

void WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

[[noreturn]] void RunChild(int pipe, const std::function<Accelerators()>& ask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A child that hangs in the kernel must not hold the port of its dead parent. What a driver
  // prints is not for standard output, where the parent writes a document.
  dup2(pipe, kAnswerFile);
  close_range(kAnswerFile + 1, ~0u, 0);
  if (int null = open("/dev/null", O_RDWR); null >= 0) dup2(null, STDOUT_FILENO);
  try {
    WriteAll(kAnswerFile, DumpJson(ToJson(ask())));
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

int MillisecondsLeft(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// All until the other side closes; empty when that takes too long.
std::optional<std::string> ReadAll(int file, Clock::time_point end) {
  std::string text;
  char buffer[16384];
  while (text.size() <= kAnswerBytes) {
    pollfd waiting = {.fd = file, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, MillisecondsLeft(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// How the child ended; empty when it has not.
std::optional<int> Reap(pid_t child, Clock::time_point end) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;  // somebody else has reaped it
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Accelerators AskInChild(const std::string& platform, std::chrono::milliseconds limit,
                        const std::function<Accelerators()>& ask) {
  const Clock::time_point end = Clock::now() + limit;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return WithoutDevices(platform, ProbeOutcome::kBroken,
                          fmt::format("no pipe for the probe: {}", std::strerror(errno)),
                          "raise the limit of open files");
  const pid_t child = fork();
  if (child == 0) RunChild(ends[1], ask);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return WithoutDevices(platform, ProbeOutcome::kBroken,
                          fmt::format("no process for the probe: {}", std::strerror(errno)),
                          "raise the limit of processes of the container");
  }
  const std::optional<std::string> text = ReadAll(ends[0], end);
  close(ends[0]);
  const std::optional<int> status = text ? Reap(child, end) : std::nullopt;
  if (!status) {
    kill(child, SIGKILL);
    Reap(child, Clock::now() + std::chrono::milliseconds(100));
    return WithoutDevices(platform, ProbeOutcome::kBroken,
                          fmt::format("the driver did not answer within {} ms", limit.count()),
                          fmt::format("{}; reset the GPU or restart the node", kKernelLog));
  }
  if (WIFSIGNALED(*status))
    return WithoutDevices(platform, ProbeOutcome::kBroken,
                          fmt::format("the driver crashed: {}", strsignal(WTERMSIG(*status))),
                          kKernelLog);
  if (std::optional<Accelerators> answer = FromJson(*text, platform)) return *std::move(answer);
  return WithoutDevices(platform, ProbeOutcome::kBroken, "the driver's probe gave no answer",
                        kKernelLog);
}

}  // namespace ashlar
