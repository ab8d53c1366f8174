#include "file_fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/problem.h"

namespace ashlar {
namespace {

struct Mapping {
  const std::byte* begin;
  const std::byte* end;
  std::string line;  // written whole: inside a handler nothing can be put together
};

// What a signal handler can reach: static, and complete before the pointer to it is set.
std::atomic<const std::vector<Mapping>*> mappings{nullptr};
struct sigaction previous;

void Explain(int number, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  if (const std::vector<Mapping>* all = mappings.load()) {
    for (const Mapping& mapping : *all) {
      if (address < mapping.begin || address >= mapping.end) continue;
      [[maybe_unused]] ssize_t written =
          write(STDERR_FILENO, mapping.line.data(), mapping.line.size());
      _exit(kFileFaultStatus);
    }
  }
  sigaction(number, &previous, nullptr);  // and the instruction faults again
}

std::string Line(const MappedFile& file) {
  Problem problem{file.path(), "it was truncated, or its storage failed, while it was served",
                  "a file that stays as it is",
                  "put the whole file back and start again; replace a model by a new file"};
  return "error source: " + problem.Text() + "\n";
}

}  // namespace

FileFaultReport::FileFaultReport(std::span<const MappedFile> files) {
  Check(mappings.load() == nullptr, "one report of file faults at a time");
  auto* all = new std::vector<Mapping>;
  for (const MappedFile& file : files) {
    if (file.bytes().empty()) continue;
    all->push_back({file.bytes().data(), file.bytes().data() + file.bytes().size(), Line(file)});
  }
  mappings = all;
  struct sigaction action {};
  action.sa_sigaction = Explain;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
}

FileFaultReport::~FileFaultReport() {
  sigaction(SIGBUS, &previous, nullptr);
  delete mappings.exchange(nullptr);
}

}  // namespace ashlar
