#include "plan/diff.h"

#include <fmt/format.h>

#include <iostream>

#include "commands/commands.h"
#include "plan/document.h"

namespace ashlar {

int DiffCommand(const std::string& from, const std::string& to) {
  Result<Json> before = ReadPlanDocument(from), after = ReadPlanDocument(to);
  Problems problems;
  for (const Result<Json>* side : {&before, &after}) {
    if (!side->ok())
      problems.insert(problems.end(), side->problems().begin(), side->problems().end());
  }
  if (!problems.empty()) return Report(problems);

  bool approval = false;
  std::string text;
  for (const PlanChange& change : DiffPlans(*before, *after)) {
    approval |= change.kind != PlanChange::Class::kAmount;
    text += fmt::format("{:8}  {}: {} -> {}\n", Name(change.kind), change.path,
                        change.from.empty() ? "nothing" : change.from,
                        change.to.empty() ? "nothing" : change.to);
  }
  std::cout << (text.empty() ? "no difference\n" : text) << std::flush;
  return approval ? 1 : 0;
}

}  // namespace ashlar
